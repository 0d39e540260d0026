package accounts

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// cheap is the least that a hash can cost.
var cheap = cost{memory: 8, time: 1, threads: 1}

const password = "correct horse battery"

// clock is a clock that stands still until it is moved.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// stores returns two Stores of a new directory, as two processes have them.
func stores(t testing.TB) (store, other *Store, c *clock) {
	t.Helper()
	c = newClock()
	dir := filepath.Join(t.TempDir(), "console")
	store, other = open(dir, cheap, c.now), open(dir, cheap, c.now)
	t.Cleanup(store.Close)
	t.Cleanup(other.Close)
	return store, other, c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// login logs in, and returns the cookie.
func login(t *testing.T, s *Store, name string) string {
	t.Helper()
	session, err := s.Login(context.Background(), name, password, Origin{Address: "192.0.2.1"})
	must(t, err)
	return session.Cookie
}
