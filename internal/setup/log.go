package setup

import (
	"errors"
	"io/fs"
	"log/slog"
	"strings"

	"spamgate/blocklist/sender"
	"spamgate/internal/config"
	"spamgate/internal/logging"
)

// OpenLog opens the configured log.
func OpenLog(c *config.Config, stderr *logging.Writer) (*logging.Log, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		return nil, err
	}
	l, err := logging.New(logging.Options{
		Output: c.Log.Output,
		Format: c.Log.Format,
		Level:  level,
		Stderr: stderr,
	})
	if err != nil {
		return nil, logFault(c, err)
	}
	return l, nil
}

// CheckLog returns an error if a start could not open the log file. A reload keeps the open
// file.
func CheckLog(c *config.Config) error {
	path, ok := strings.CutPrefix(c.Log.Output, logging.OutputFile)
	if !ok {
		return nil
	}
	return logFault(c, logging.CheckFile(path))
}

// logFault returns an error in opening the log, with its place in the configuration.
func logFault(c *config.Config, err error) error {
	if err == nil {
		return nil
	}
	if strings.HasPrefix(c.Log.Output, logging.OutputFile) {
		return c.Fault("log.output", err.Error(), logFileHint(err))
	}
	what, hint, _ := strings.Cut(err.Error(), "; ")
	return c.Fault("log.output", what, hint)
}

// logFileHint says what to do about an error in opening a log file.
func logFileHint(err error) string {
	switch {
	case errors.Is(err, logging.ErrLink):
		return `name a regular file, write output = "stderr", or remove the write permission of others from the directory`
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return `make the directory and let the gate's user write to it, or write output = "stderr"`
	}
	return `name a regular file, or write output = "stderr"`
}

// ShowAddress returns the function that writes addresses for the log. It hashes the normal
// form, so that all spellings of an address have the same hash.
func ShowAddress(c *config.Config) (func(string) string, error) {
	if c.Log.Addresses == logging.AddressesHash {
		return hashAddress(c)
	}
	r, err := logging.NewRedactor(c.Log.Addresses, c.State.Dir)
	if err != nil {
		return nil, err
	}
	return r.Address, nil
}

// FindHashed returns the function that hashes addresses as the log of a gate does, or nil if no
// gate has ever done so. It makes no key.
func FindHashed(c *config.Config) (func(string) string, error) {
	if has, err := logging.HasKey(c.State.Dir); !has || err != nil {
		return nil, err
	}
	return hashAddress(c)
}

func hashAddress(c *config.Config) (func(string) string, error) {
	r, err := logging.NewRedactor(logging.AddressesHash, c.State.Dir)
	if err != nil {
		return nil, err
	}
	return func(address string) string {
		if a, err := sender.Parse(address); err == nil {
			address = a.String()
		}
		return r.Address(address)
	}, nil
}
