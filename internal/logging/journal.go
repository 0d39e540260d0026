package logging

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coreos/go-systemd/v22/journal"
)

// newJournal logs to systemd's journal: the line as MESSAGE, so that
// journalctl shows what standard error would, and every attribute as a field
// SPAMGATE_KEY, so that journalctl SPAMGATE_ID=… finds it.
func newJournal(o Options) (*slog.Logger, io.Closer, error) {
	if !journal.Enabled() {
		return nil, nil, errors.New(`no systemd journal on this machine (no socket at /run/systemd/journal/socket); write output = "stderr" or "syslog" in [log]`)
	}
	return slog.New(newRelay(o, sendJournal)), nopCloser{}, nil
}

func sendJournal(r slog.Record, line string, h *relay) error {
	fields := slices.Clip(h.fields)
	r.Attrs(func(a slog.Attr) bool {
		fields = appendFields(fields, h.groups, a)
		return true
	})
	vars := make(map[string]string, len(fields)+2)
	for _, f := range fields {
		vars[fieldName(f.path)] = fieldText(f.value)
	}
	vars["SYSLOG_IDENTIFIER"] = identifier
	vars["SYSLOG_FACILITY"] = "2" // mail, as with syslog
	return journal.Send(line, journalPriority(r.Level), vars)
}

// journalPriority is syslog's severity of a level. Levels between the named
// ones count as the one below.
func journalPriority(level slog.Level) journal.Priority {
	switch {
	case level >= slog.LevelError:
		return journal.PriErr
	case level >= slog.LevelWarn:
		return journal.PriWarning
	case level >= slog.LevelInfo:
		return journal.PriInfo
	}
	return journal.PriDebug
}

// maxFieldName is the longest name that journald takes
// (systemd.journal-fields(7)).
const maxFieldName = 64

// fieldName is the name of an attribute in the journal: upper case, with "_"
// between groups and for whatever journald refuses.
func fieldName(path []string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, identifier+"_"+strings.Join(path, "_"))
	return name[:min(len(name), maxFieldName)]
}

// fieldText is the text of a value, escaped where it holds what a terminal
// would act upon.
func fieldText(v slog.Value) string {
	var s string
	switch v.Kind() {
	case slog.KindTime:
		s = v.Time().Format(time.RFC3339Nano)
	case slog.KindAny:
		s = fmt.Sprintf("%+v", v.Any()) // as slog's text has it
	default:
		s = v.String()
	}
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !visible(r) }) {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}
