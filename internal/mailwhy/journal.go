package mailwhy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"
)

// ErrNoJournal says that this machine has no journalctl.
var ErrNoJournal = errors.New("no journalctl on this machine")

// ReadJournal reads what a unit wrote to systemd's journal.
func (s *Search) ReadJournal(ctx context.Context, unit string, since time.Time) error {
	program, err := exec.LookPath("journalctl")
	if err != nil {
		return ErrNoJournal
	}
	// Without --all journalctl leaves long fields out.
	args := []string{"--output=json", "--all", "--no-pager", "--quiet", "--output-fields=MESSAGE", "--unit=" + unit}
	if !since.IsZero() {
		args = append(args, "--since=@"+strconv.FormatInt(since.Unix(), 10))
	}
	cmd := exec.CommandContext(ctx, program, args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("journalctl: %w", err)
	}
	err = s.Read(ctx, out, journalMessage)
	if ended := cmd.Wait(); err == nil {
		err = ended
	}
	switch said := bytes.TrimSpace(errs.Bytes()); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && len(said) > 0:
		return fmt.Errorf("journalctl: %w: %s", err, said[:min(len(said), 1000)])
	case err != nil:
		return fmt.Errorf("journalctl: %w", err)
	}
	return nil
}

// journalMessage returns the message in a line of journalctl's JSON: a text, or, if that would
// not be UTF-8, an array of bytes. It returns nil if there is none.
func journalMessage(line []byte) []byte {
	var entry struct {
		Message json.RawMessage `json:"MESSAGE"`
	}
	if json.Unmarshal(line, &entry) != nil {
		return nil
	}
	var text string
	if json.Unmarshal(entry.Message, &text) == nil {
		return []byte(text)
	}
	var numbers []int
	if json.Unmarshal(entry.Message, &numbers) != nil {
		return nil
	}
	message := make([]byte, len(numbers))
	for i, n := range numbers {
		if n < 0 || n > 255 {
			return nil
		}
		message[i] = byte(n)
	}
	return message
}
