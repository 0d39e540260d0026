package admin

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"spamgate/internal/managed"
	"spamgate/internal/unixsocket"
)

// fakeGate is a Gate with one list, "blocked", that records its calls.
type fakeGate struct {
	mu       sync.Mutex
	accepted []string
	audited  []AuditRecord
	by       []managed.By
	unused   int   // entries to say are unused
	fail     error // in the midst of them
	wait     chan struct{}
	warnings []string
	notReady error
}

func (g *fakeGate) Status() Status {
	return Status{From: FromGate, PID: os.Getpid(), Generation: 7, Lists: []List{{Name: "blocked", Entries: 3}}}
}
func (g *fakeGate) Generation() uint64 { return 7 }

func (g *fakeGate) Health(context.Context) Health {
	return Health{Healthy: true, Running: true, PID: 7}
}

func (g *fakeGate) Ready() ([]string, error) { return g.warnings, g.notReady }

func (g *fakeGate) Rescan(ctx context.Context) (Rescanned, error) {
	if g.wait != nil {
		select {
		case <-g.wait:
		case <-ctx.Done():
			return Rescanned{}, ctx.Err()
		}
	}
	return Rescanned{Generation: 8, Failed: []Failed{{List: "blocked", Error: "shrunk", Held: true}}}, nil
}

func (g *fakeGate) Accept(_ context.Context, _ managed.By, list string, r AcceptRequest) (Accepted, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case list != "blocked":
		return Accepted{}, fmt.Errorf("%w %q", ErrNoList, list)
	case r.SHA256 == "":
		return Accepted{}, fmt.Errorf("list %q: %w", list, ErrNothingHeld)
	}
	g.accepted = append(g.accepted, r.SHA256)
	return Accepted{Generation: 9, Entries: 2, Before: 5}, nil
}

func (g *fakeGate) Pin(_ context.Context, by managed.By, list string, r PinRequest) (PinResult, error) {
	if list != "blocked" {
		return PinResult{}, fmt.Errorf("%w %q", ErrNoList, list)
	}
	return PinResult{Generation: 10, Pinned: &Pinned{SHA256: r.SHA256, Entries: r.Entries, Who: fmt.Sprint(by.UID), Why: r.Why}}, nil
}

func (g *fakeGate) Unpin(_ context.Context, _ managed.By, list string, _ UnpinRequest) (PinResult, error) {
	return PinResult{}, fmt.Errorf("list %q: %w", list, ErrNotPinned)
}

func (g *fakeGate) Unused(_ context.Context, list string, since time.Time, here bool, begin func(UnusedHeader) error, each func(UnusedEntry) error) (UnusedEnd, error) {
	if list != "blocked" {
		return UnusedEnd{}, fmt.Errorf("%w %q", ErrNoList, list)
	}
	h := UnusedHeader{List: list, Since: since.Format(Day), Known: "2026-01-02"}
	if !here {
		h.Fleet = &UnusedFleet{Gates: []string{"mx1"}, Missing: []string{"mx2"}}
	}
	if err := begin(h); err != nil {
		return UnusedEnd{}, err
	}
	for i := range g.unused {
		if err := each(UnusedEntry{Entry: fmt.Sprintf("%d.example", i), File: "f", Line: i + 1}); err != nil {
			return UnusedEnd{}, err
		}
	}
	return UnusedEnd{Unused: uint64(g.unused), Entries: 10}, g.fail
}

func (g *fakeGate) Handover(ctx context.Context, limit time.Duration) (HandedOver, error) {
	if limit == 0 {
		return HandedOver{}, fmt.Errorf("%w to process 8", ErrHandingOver)
	}
	return HandedOver{Old: Process{PID: 7}, New: Process{PID: 8}, Seconds: limit.Seconds()}, nil
}

func (g *fakeGate) Audit(by managed.By, r AuditRecord) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.audited, g.by = append(g.audited, r), append(g.by, by)
	return nil
}

// listen opens a server in its own directory, and closes it after the test.
func listen(t *testing.T, gate Gate) *Server {
	t.Helper()
	return listenAt(t, Options{Gate: gate, Socket: unixsocket.Socket{Path: filepath.Join(t.TempDir(), "admin.sock"), Mode: 0o600}})
}

func listenAt(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func dial(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// raw sends a request without a Client.
func raw(t *testing.T, c *Client, r *http.Request) *http.Response {
	t.Helper()
	response, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return response
}
