// Package logging makes the gate's logger: where lines go, and in which form.
//
// Much of what is logged was written by strangers: senders, HELO names, the
// next hop's replies. Whatever they hold, a record stays one line, and nothing
// that a terminal acts upon (escape sequences, control characters, characters
// that turn the direction of writing) gets out unescaped, in any format.
package logging

import (
	"fmt"
	"io"
	"log/slog"
	"os"
)

// The outputs and formats of Options.
const (
	OutputStderr  = "stderr"
	OutputSyslog  = "syslog"
	OutputJournal = "journal"

	FormatText = "text"
	FormatJSON = "json"
)

// identifier is the program's name in syslog and journal.
const identifier = "spamgate"

// Options choose a logger. The zero value logs text to standard error from
// level info on.
type Options struct {
	// Output is OutputStderr, OutputSyslog or OutputJournal; empty is stderr.
	Output string

	// Format is FormatText (key=value) or FormatJSON; empty is text. In the
	// journal it is the form of the message, as every attribute is a field of
	// its own there.
	Format string

	// Level is the least level that is logged; nil is info. A *slog.LevelVar
	// can be changed later.
	Level slog.Leveler

	// Stderr takes the lines of OutputStderr, and those that syslog or journal
	// refuse later on, so that none is lost; nil is os.Stderr. It is written
	// to with one call a line, never by two goroutines at once.
	Stderr io.Writer
}

// New makes a logger. The closer gives up its connection; the logger must not
// be used afterwards. Syslog and journal are tried out at once: an error says
// that they are not there, and what to do.
func New(o Options) (*slog.Logger, io.Closer, error) {
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	if o.Format == "" {
		o.Format = FormatText
	}
	if o.Format != FormatText && o.Format != FormatJSON {
		return nil, nil, fmt.Errorf("log format %q is not known; use %q or %q", o.Format, FormatText, FormatJSON)
	}
	switch o.Output {
	case "", OutputStderr:
		return slog.New(newHandler(o.Stderr, o)), nopCloser{}, nil
	case OutputSyslog:
		return newSyslog("", "", o)
	case OutputJournal:
		return newJournal(o)
	}
	return nil, nil, fmt.Errorf("log output %q is not known; use %q, %q or %q", o.Output, OutputStderr, OutputSyslog, OutputJournal)
}

// newHandler is slog's handler of the wanted format behind the escaping that
// slog leaves out.
func newHandler(w io.Writer, o Options) slog.Handler {
	opts := &slog.HandlerOptions{Level: o.Level}
	if o.Format == FormatJSON {
		return slog.NewJSONHandler(&escaper{w: w, escape: appendJSONEscape}, opts)
	}
	return slog.NewTextHandler(&escaper{w: w, escape: appendGoEscape}, opts)
}

// nopCloser is the closer of a logger that holds nothing open.
type nopCloser struct{}

func (nopCloser) Close() error { return nil }
