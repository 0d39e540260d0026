package logging

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"time"
)

// atomicWrite is how many bytes a pipe accepts in one piece (PIPE_BUF on Linux,
// pipe(7)). During a handover two gates may write to one pipe, and must not mix their
// lines.
const atomicWrite = 4096

// stream is the output of a file or pipe.
type stream struct {
	w    io.Writer
	torn bool // the last line is incomplete
}

func (s *stream) write(b batch) (done, kept int) {
	done, kept, _ = s.writeFirst(b)
	return done, kept
}

// writeFirst writes the entries that fit in one piece. The error is about those that
// were lost.
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

// Writer is a writer that never blocks, for standard error: it puts lines into a
// queue, and drops and counts them when that is full. It is safe for concurrent use.
type Writer struct {
	w io.Writer
	q *queue
}

// NewWriter returns a Writer. Each of its lines becomes one call of w.Write or a part
// of one, in order.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w, newQueue(&stream{w: w}, handlerNotice(Options{Format: FormatText}), nil)}
}

// Write implements io.Writer. It never fails.
func (w *Writer) Write(p []byte) (int, error) { return w.q.Write(p) }

// Unwrap returns the underlying writer.
func (w *Writer) Unwrap() io.Writer { return w.w }

// Dropped returns how many lines were dropped.
func (w *Writer) Dropped() uint64 { return w.q.lost.Load() }

// Close writes the lines in the queue, and gives up after 5 seconds. Later lines are
// dropped. It does not close the underlying writer.
func (w *Writer) Close() {
	_, _ = w.q.close(drainLimit) // there is nowhere to report it
}

// setFormat sets the format of notices.
func (w *Writer) setFormat(o Options) {
	w.q.mu.Lock()
	defer w.q.mu.Unlock()
	w.q.notice = handlerNotice(o)
}

// handlerNotice returns the notice of an output of lines.
func handlerNotice(o Options) notice {
	var line bytes.Buffer
	h := newHandler(&line, o)
	return func(dropped uint64, since time.Time) ([]byte, int) {
		line.Reset()
		_ = h.Handle(context.Background(), noticeRecord(dropped, since)) // a buffer takes everything
		return line.Bytes(), 0
	}
}

// noticeRecord returns the record that reports dropped lines.
func noticeRecord(dropped uint64, since time.Time) slog.Record {
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "log lines dropped", 0)
	r.AddAttrs(slog.Uint64("dropped", dropped), slog.Time("since", since))
	return r
}
