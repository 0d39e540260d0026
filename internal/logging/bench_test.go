package logging

import (
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// logDecision logs the line of an accepted message.
func logDecision(l *slog.Logger) {
	l.Info("accepted", "id", "01JD4Z7Q8N2M", "listener", "listen", "duration", 1840*time.Microsecond,
		"client", "192.0.2.25", "helo", "mail.example.org", "tls", "TLS 1.3", "from", "someone@example.org",
		"to", "you@example.net", "message_id", "<20261122092611.4711@example.org>", "size", 4096,
		"action", "accept", "next_hop", "250 2.0.0 Ok: queued as 4F2B1C0D3E")
}

// burst is how many lines are logged per millisecond: 20,000 per second, or fewer on a
// slow machine.
const burst = 20

// processorTime returns the processor time of this process.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkDecision measures the time of logging a line, with a reader that keeps up.
func BenchmarkDecision(b *testing.B) {
	b.Run("pipe", func(b *testing.B) {
		r, w, err := os.Pipe()
		if err != nil {
			b.Fatal(err)
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			io.Copy(io.Discard, r)
		}()
		benchmarkDecision(b, Options{Stderr: w})
		w.Close()
		<-read
		r.Close()
	})
	b.Run("null", func(b *testing.B) {
		w, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer w.Close()
		benchmarkDecision(b, Options{Stderr: w})
	})
	b.Run("journal", func(b *testing.B) {
		path := filepath.Join(b.TempDir(), "s")
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		go func() {
			buf := make([]byte, 64<<10)
			for {
				if _, err := conn.Read(buf); err != nil {
					return
				}
			}
		}()
		machine := journalSocket
		journalSocket = path
		defer func() { journalSocket = machine }()
		benchmarkDecision(b, Options{Output: OutputJournal})
	})
}

func benchmarkDecision(b *testing.B, o Options) {
	if o.Stderr != nil {
		w := NewWriter(o.Stderr)
		defer w.Close()
		o.Stderr = w
	}
	l, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	before := processorTime(b)
	lines := 0
	for b.Loop() {
		logDecision(l.Logger)
		if lines++; lines%burst == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(processorTime(b)-before)/float64(lines), "cpu-ns/op")
	l.Close()
}
