package decisions

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestPanic has the writer panic: the gate goes on, the rows in its hands are counted as lost, and
// the next ones are written.
func TestPanic(t *testing.T) {
	var faulty atomic.Bool
	var log strings.Builder
	r, err := Open(Options{Dir: t.TempDir(), Keep: time.Hour, MaxBytes: 1 << 30, All: true, Logger: slog.New(slog.NewTextHandler(&log, nil)), Now: func() time.Time {
		if faulty.CompareAndSwap(true, false) {
			panic("fault")
		}
		return time.Now()
	}})
	if err != nil {
		t.Fatal(err)
	}
	record := func(id string) error {
		r.Record(&Decision{ID: id, Time: time.Now(), Event: "refused", Action: "reject", Sender: id + "@a.example"})
		return r.Sync(context.Background())
	}
	if err := record("A"); err != nil {
		t.Fatal(err)
	}
	faulty.Store(true)
	if err := record("B"); err == nil || !strings.Contains(err.Error(), "fault") {
		t.Errorf("while it panics: %v", err)
	}
	if err := record("C"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if s := r.Stats(); s.Rows != 2 || s.Dropped != 1 || s.Err != "" {
		t.Errorf("%+v", s)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "panic_test.go") {
		t.Errorf("the log does not say where:\n%s", log.String())
	}
}
