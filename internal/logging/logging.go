// Package logging makes the gate's logger: it writes lines or JSON to standard error,
// syslog, systemd's journal or a file.
//
// Strangers write much of what is logged: senders, HELO names, the next hop's
// replies. In any format a record is one line, and characters that control a terminal
// (escape sequences, control characters, changes of the writing direction) are
// escaped.
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

// Options configure a Log. The zero value logs text to standard error at level info
// and above.
type Options struct {
	// Output is OutputStderr, OutputSyslog, OutputJournal, or OutputFile followed
	// by a path; empty means stderr.
	Output string

	// Format is FormatText (key=value) or FormatJSON; empty means text. The
	// journal's messages have it too, although each attribute is also a field.
	Format string

	// Level is the least level that is logged; nil means info. A *slog.LevelVar
	// can change later.
	Level slog.Leveler

	// Stderr takes the lines of OutputStderr, the lines that syslog or the journal
	// refuse, and errors of the other outputs. It gets one call per line, and
	// should be a Writer, so that nobody waits for it. Nil means a new Writer for
	// os.Stderr.
	Stderr io.Writer
}

// Log is an open log. Logging never waits: lines go through a queue, which drops and
// counts lines when it is full.
type Log struct {
	Logger *slog.Logger
	queue  *queue       // nil with OutputStderr: Options.Stderr has its own
	stderr *slog.Logger // takes errors of another output
	output string
}

// New opens a log. No line is longer than MaxLine. If syslog, the journal or the
// file cannot be opened, the error says what to do.
func New(o Options) (*Log, error) {
	l, err := open(o)
	if err == nil {
		l.Logger = slog.New(&limiter{Handler: l.Logger.Handler()})
	}
	return l, err
}

// open is New without the limit on lines.
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

// newLog returns a Log with a queue and without a Logger.
func newLog(out output, n notice, o Options) *Log {
	l := &Log{output: o.Output, stderr: alarms(o)}
	l.queue = newQueue(out, n, func() {
		l.stderr.Warn("log output is too slow, lines are dropped", "output", l.output)
	})
	return l
}

// Reopen opens a log file again, after it was renamed. It does not wait: if opening
// fails, the log says so and continues in the old file. With other outputs it does
// nothing.
func (l *Log) Reopen() {
	if l.queue != nil {
		l.queue.reopen()
	}
}

// Dropped returns how many lines were dropped. For standard error see
// Writer.Dropped.
func (l *Log) Dropped() uint64 {
	if l.queue == nil {
		return 0
	}
	return l.queue.lost.Load()
}

// Close writes the lines in the queue, and closes the output. After 5 seconds it
// gives up, and reports the number of lost lines on standard error. Later lines are
// dropped.
func (l *Log) Close() {
	if l.queue == nil {
		return
	}
	left, err := l.queue.close(drainLimit)
	if left > 0 || err != nil {
		l.stderr.Warn("last log lines lost", "output", l.output, "lines", left, "error", err)
	}
}

// alarms returns a logger for standard error, with level info.
func alarms(o Options) *slog.Logger {
	return slog.New(newHandler(o.Stderr, Options{Format: o.Format}))
}

// newHandler returns slog's handler of the format, with the escaping that slog lacks.
func newHandler(w io.Writer, o Options) slog.Handler {
	opts := &slog.HandlerOptions{Level: o.Level}
	if o.Format == FormatJSON {
		return slog.NewJSONHandler(&escaper{w: w, escape: appendJSONEscape}, opts)
	}
	return slog.NewTextHandler(&escaper{w: w, escape: appendGoEscape}, opts)
}
