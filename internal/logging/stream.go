package logging

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"time"
)

// atomicWrite is how much can be written to a pipe in one piece (PIPE_BUF on
// Linux, pipe(7)). Two gates may write to the same one during a handover, and
// their lines must not be mixed.
const atomicWrite = 4096

// stream is the output of a file or pipe.
type stream struct {
	w    io.Writer
	torn bool // the last line was not written to its end
}

func (s *stream) write(b batch) (done, kept int) {
	done, kept, _ = s.writeFirst(b)
	return done, kept
}

// writeFirst writes as much as fits in one piece. The error is that of what was
// lost.
func (s *stream) writeFirst(b batch) (done, kept int, err error) {
	b = b.first(atomicWrite)
	if s.torn {
		if _, err := s.w.Write([]byte("\n")); err != nil {
			return len(b.entries), 0, err
		}
		s.torn = false
	}
	n, err := s.w.Write(b.data)
	if err == nil {
		return len(b.entries), len(b.entries), nil
	}
	s.torn = n > 0 && b.data[n-1] != '\n'
	for _, e := range b.entries {
		if n < e.size {
			break
		}
		n -= e.size
		kept++
	}
	return len(b.entries), kept, err
}

func (s *stream) reopen()      {}
func (s *stream) close() error { return nil }

// Writer is a writer that nobody ever waits for: what is written is put into a
// queue, and what does not fit into that is dropped and counted. It is for
// standard error, and safe for concurrent use.
type Writer struct {
	w io.Writer
	q *queue
}

// NewWriter makes a Writer. Each call of its Write becomes one call of w's or part
// of one, in the same order.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w, newQueue(&stream{w: w}, handlerNotice(Options{Format: FormatText}), nil)}
}

// Write implements io.Writer. It never fails.
func (w *Writer) Write(p []byte) (int, error) { return w.q.Write(p) }

// Unwrap returns what NewWriter was given.
func (w *Writer) Unwrap() io.Writer { return w.w }

// Dropped returns how many lines were dropped.
func (w *Writer) Dropped() uint64 { return w.q.lost.Load() }

// Close writes what is in the queue. If that takes longer than 5 seconds the rest
// is lost. What is written later is dropped. It does not close the underlying
// writer.
func (w *Writer) Close() {
	_, _ = w.q.close(drainLimit) // there is nowhere to say it
}

// setFormat has the notices of dropped lines written as the log is.
func (w *Writer) setFormat(o Options) {
	w.q.mu.Lock()
	defer w.q.mu.Unlock()
	w.q.notice = handlerNotice(o)
}

// handlerNotice returns the notice of an output that takes lines.
func handlerNotice(o Options) notice {
	var line bytes.Buffer
	h := newHandler(&line, o)
	return func(dropped uint64, since time.Time) ([]byte, int) {
		line.Reset()
		_ = h.Handle(context.Background(), noticeRecord(dropped, since)) // a buffer takes everything
		return line.Bytes(), 0
	}
}

// noticeRecord is what the log says of dropped lines.
func noticeRecord(dropped uint64, since time.Time) slog.Record {
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines dropped", 0)
	r.AddAttrs(slog.Uint64("dropped", dropped), slog.Time("since", since))
	return r
}
