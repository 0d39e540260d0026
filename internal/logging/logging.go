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
	"strings"
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
	// Output is OutputStderr, OutputSyslog, OutputJournal, or OutputFile with a
	// path behind it; empty is stderr.
	Output string

	// Format is FormatText (key=value) or FormatJSON; empty is text. In the
	// journal it is the form of the message, as every attribute is a field of
	// its own there.
	Format string

	// Level is the least level that is logged; nil is info. A *slog.LevelVar
	// can be changed later.
	Level slog.Leveler

	// Stderr takes the lines of OutputStderr, those that syslog or journal
	// refuse later on, so that none is lost, and what is wrong with another
	// output. It is written to with one call a line, at any time, and should be
	// a Writer, so that nobody waits for it. Nil is a new one for os.Stderr.
	Stderr io.Writer
}

// Log is an open log. Whoever logs never waits: lines go through a queue, which
// drops and counts what it has no room for.
type Log struct {
	Logger *slog.Logger
	queue  *queue       // nil with OutputStderr: o.Stderr has its own
	stderr *slog.Logger // says what is wrong with another output
	output string
}

// New opens a log. No line is longer than MaxLine. Syslog, journal and files are
// tried out at once: an error says that they are not there, and what to do.
func New(o Options) (*Log, error) {
	l, err := open(o)
	if err != nil {
		return nil, err
	}
	l.Logger = slog.New(&limiter{Handler: l.Logger.Handler()})
	return l, nil
}

// open is New without a bound on the lines.
func open(o Options) (*Log, error) {
	if o.Stderr == nil {
		o.Stderr = NewWriter(os.Stderr)
	}
	if o.Format == "" {
		o.Format = FormatText
	}
	if o.Format != FormatText && o.Format != FormatJSON {
		return nil, fmt.Errorf("log format %q is not known; use %q or %q", o.Format, FormatText, FormatJSON)
	}
	if w, ok := o.Stderr.(*Writer); ok {
		w.setFormat(o)
	}
	if path, ok := strings.CutPrefix(o.Output, OutputFile); ok {
		return newFile(path, o)
	}
	switch o.Output {
	case "", OutputStderr:
		return &Log{Logger: slog.New(newHandler(o.Stderr, o))}, nil
	case OutputSyslog:
		return newSyslog(o, syslogSockets...)
	case OutputJournal:
		return newJournal(o)
	}
	return nil, fmt.Errorf("log output %q is not known; use %q, %q, %q or %q", o.Output, OutputStderr, OutputSyslog, OutputJournal, OutputFile+"PATH")
}

// newLog begins a log with a queue. Its Logger is still to be made.
func newLog(out output, n notice, o Options) *Log {
	l := &Log{output: o.Output, stderr: alarms(o)}
	l.queue = newQueue(out, n, func() {
		l.stderr.Warn("the log does not take its lines, they are dropped", "output", l.output)
	})
	return l
}

// Reopen opens a log file again, which was moved away perhaps. It does not wait for
// that: where it fails the log says so, and the file before goes on. With other
// outputs it does nothing.
func (l *Log) Reopen() {
	if l.queue != nil {
		l.queue.reopen()
	}
}

// Dropped returns how many lines were dropped. Those of standard error are
// counted there, see Writer.
func (l *Log) Dropped() uint64 {
	if l.queue == nil {
		return 0
	}
	return l.queue.lost.Load()
}

// Close writes what is in the queue, and gives up the output. If that takes longer
// than 5 seconds the rest is lost, and standard error is told how much that is.
// What is logged later is dropped.
func (l *Log) Close() {
	if l.queue == nil {
		return
	}
	left, err := l.queue.close(drainLimit)
	if left > 0 || err != nil {
		l.stderr.Warn("the end of the log is lost", "output", l.output, "lines", left, "error", err)
	}
}

// alarms returns a logger for standard error, whatever the level of the log is.
func alarms(o Options) *slog.Logger {
	return slog.New(newHandler(o.Stderr, Options{Format: o.Format}))
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
