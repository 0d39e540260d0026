package edit

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// fromInput reports whether the entries are to be read from standard input.
func fromInput(args []string) bool { return len(args) == 1 && args[0] == "-" }

// entryLine is a line of standard input that has an entry.
type entryLine struct {
	text  string // the entry as it is spelled
	entry listfile.Entry
}

// maxEntryLines bounds what is read from standard input, in bytes: all of it is checked
// before anything is changed.
const maxEntryLines = 256 << 20

// readEntryLines reads entries from standard input, one on each line, as in a plain
// list. An invalid line is an error that names its number.
func readEntryLines(s *session.Session, o listfile.Options) ([]entryLine, error) {
	in, err := listfiles.OpenInput(s, s.Cmd.InOrStdin(), "-", term.NewFileProgress(s.Stderr))
	if err != nil {
		return nil, err
	}
	defer in.Close()
	content, err := io.ReadAll(io.LimitReader(in, maxEntryLines+1))
	if err == nil && len(content) > maxEntryLines {
		err = fmt.Errorf("more than %d bytes: use spamgate lists import", maxEntryLines)
	}
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	return parseEntryLines(content, o)
}

func parseEntryLines(content []byte, o listfile.Options) ([]entryLine, error) {
	var faults lineFaults
	o.Format, o.Now = listfile.Plain, 1
	entries := listfile.NewReader(bytes.NewReader(content), o)
	entries.Problem = func(p listfile.Problem) { faults.add(session.NewProblemAt("standard input", p).String()) }
	lines := strings.Split(string(content), "\n")
	var found []entryLine
	for e, err := range entries.All() {
		if err == nil && e.Line > len(lines) {
			err = errors.New("it is packed: unpack it first")
		}
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		line := strings.TrimPrefix(strings.TrimSuffix(lines[e.Line-1], "\r"), "\ufeff")
		written, _ := listfile.CutComment(line)
		found = append(found, entryLine{strings.TrimSpace(written), e})
	}
	if err := faults.err(); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("no entry on standard input: write one on each line")
	}
	return found, nil
}

// lineFaults collects what is wrong with lines of standard input.
type lineFaults struct {
	shown []error
	more  int
}

// maxLineFaults bounds the lines that an error names.
const maxLineFaults = 20

func (f *lineFaults) add(what string) {
	if len(f.shown) == maxLineFaults {
		f.more++
		return
	}
	f.shown = append(f.shown, errors.New(what))
}

func (f *lineFaults) err() error {
	if f.more > 0 {
		return errors.Join(append(f.shown, fmt.Errorf("and %s more", text.Count(f.more, "line", "lines")))...)
	}
	return errors.Join(f.shown...)
}

// newEntriesOfInput reads the entries to be added from standard input. The comment of a
// line takes the place of the flags.
func newEntriesOfInput(s *session.Session, l *listfiles.List, flags listedit.NewEntry) ([]listedit.NewEntry, error) {
	options := l.Options
	options.PerRecipient = options.PerRecipient && s.Recipient == ""
	lines, err := readEntryLines(s, options)
	if err != nil {
		return nil, err
	}
	guarded := listfiles.NewProtection(s.Config)
	var faults lineFaults
	entries := make([]listedit.NewEntry, len(lines))
	for i, line := range lines {
		n := listedit.NewEntry{
			Text:   withRecipient(s, line.text),
			Reason: cmp.Or(line.entry.Reason, flags.Reason),
			Note:   cmp.Or(line.entry.Note, flags.Note),
			Until:  cmp.Or(listfiles.Until(line.entry.Until), flags.Until),
		}
		entries[i] = n
		e, err := n.Parse(l.Options)
		switch {
		case err != nil:
		case n.Reason == "":
			err = errors.New("no reason: write one after the entry (spam.example # unsolicited), or give one for all with --reason")
		case e.Until != 0 && e.Until <= time.Now().Unix():
			err = errors.New("its until= is over already")
		default:
			err = guarded.Check(l, e)
		}
		if err != nil {
			faults.add(fmt.Sprintf("standard input:%d: %v", line.entry.Line, err))
		}
	}
	return entries, faults.err()
}

// entriesToRemove returns the entries of a command's arguments, or of standard input.
func entriesToRemove(s *session.Session, args []string) ([]string, error) {
	if !fromInput(args) {
		return args, nil
	}
	options := listfile.Options{AllowPublicSuffix: true}
	if l := setup.ListIndex(s.Config, s.List); l >= 0 && s.Recipient == "" {
		options.PerRecipient = s.Config.Lists[l].PerRecipient
	}
	lines, err := readEntryLines(s, options)
	if err != nil {
		return nil, err
	}
	entries := make([]string, len(lines))
	for i, line := range lines {
		entries[i] = line.text
	}
	return entries, nil
}
