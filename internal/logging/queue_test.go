package logging

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// gated is an output that waits for permission before each write, and may fail.
type gated struct {
	leave chan error // nil: the write goes well
	got   bytes.Buffer
	text  chan struct{} // a write has ended
}

func newGated() *gated { return &gated{leave: make(chan error), text: make(chan struct{}, 1<<20)} }

func (g *gated) write(b batch) (done, kept int) {
	err := <-g.leave
	defer func() { g.text <- struct{}{} }()
	if err != nil {
		return 1, 0
	}
	g.got.Write(b.data[:b.entries[0].size])
	return 1, 1
}

func (g *gated) reopen()      { g.got.WriteString("reopened\n") }
func (g *gated) close() error { return nil }

// lineNotice is a short notice.
func lineNotice(dropped uint64, _ time.Time) ([]byte, int) {
	return fmt.Appendf(nil, "dropped %d\n", dropped), 0
}

func (q *queue) addLine(i int) { q.add(fmt.Appendf(nil, "line %d\n", i), 0) }

// closeQueue closes a queue whose output is not blocked.
func closeQueue(t *testing.T, q *queue, g *gated) string {
	t.Helper()
	close(g.leave)
	if left, err := q.close(time.Minute); left != 0 || err != nil {
		t.Fatalf("%d left, %v", left, err)
	}
	return g.got.String()
}

// TestQueueFull fills a queue twice. A notice replaces the lost entries, and all others
// arrive in order.
func TestQueueFull(t *testing.T) {
	g := newGated()
	full := 0
	q := newQueue(g, lineNotice, func() { full++ })
	const more = 100
	for i := range maxQueued + more {
		q.addLine(i)
	}
	if got := q.lost.Load(); got != more {
		t.Fatalf("%d lines were lost, want %d", got, more)
	}
	for range maxQueued/2 - 1 { // not yet half of it
		g.leave <- nil
		<-g.text
	}
	q.addLine(-1)
	for range 2 { // the second shows that the first is counted
		g.leave <- nil
		<-g.text
	}
	q.addLine(maxQueued + more)
	out := closeQueue(t, q, g)
	var want strings.Builder
	for i := range maxQueued {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	fmt.Fprintf(&want, "dropped %d\nline %d\n", more+1, maxQueued+more)
	if out != want.String() {
		t.Errorf("got %d bytes, want %d; the end is %q", len(out), want.Len(), out[max(0, len(out)-200):])
	}
	if full != 1 || q.lost.Load() != more+1 {
		t.Errorf("%d times full, %d lost", full, q.lost.Load())
	}
}

// TestQueueFullOfBytes checks the limit on bytes, and that a line above it is dropped.
func TestQueueFullOfBytes(t *testing.T) {
	g := newGated()
	q := newQueue(g, lineNotice, nil)
	long := []byte(strings.Repeat("x", 1<<20-1) + "\n")
	for range 20 {
		q.add(long, 0)
	}
	if got := q.lost.Load(); got != 4 {
		t.Errorf("%d lines were lost, want 4", got)
	}
	if out := closeQueue(t, q, g); strings.Count(out, "\n") != 17 || !strings.HasSuffix(out, "x\ndropped 4\n") {
		t.Errorf("the end is %q", out[len(out)-20:])
	}

	g = newGated()
	q = newQueue(g, lineNotice, nil)
	q.add(make([]byte, maxQueuedBytes+1), 0)
	q.addLine(1)
	if out := closeQueue(t, q, g); out != "dropped 1\nline 1\n" {
		t.Errorf("got %q", out)
	}
}

// TestQueueOutputFails checks that a notice follows as soon as a write succeeds again.
func TestQueueOutputFails(t *testing.T) {
	g := newGated()
	q := newQueue(g, lineNotice, nil)
	for i := range 4 {
		q.addLine(i)
	}
	full := errors.New("no space left on device")
	// Each but the first follows a notice of the earlier ones.
	for _, err := range []error{nil, full, full, full, full, full} {
		g.leave <- err
		<-g.text
	}
	q.addLine(4)
	if out, want := closeQueue(t, q, g), "line 0\ndropped 3\nline 4\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
	if got := q.lost.Load(); got != 3 {
		t.Errorf("%d lines were lost, want 3", got)
	}
}

// TestQueueStuckAtClose closes a queue whose output blocks for ever.
func TestQueueStuckAtClose(t *testing.T) {
	g := newGated()
	q := newQueue(g, lineNotice, nil)
	for i := range 3 {
		q.addLine(i)
	}
	if left, err := q.close(0); left != 3 || err != nil {
		t.Errorf("%d lines are left, %v, want 3", left, err)
	}
	q.addLine(3)
	if got := q.lost.Load(); got != 1 {
		t.Errorf("%d lines were lost after the end, want 1", got)
	}
	if out, want := closeQueue(t, q, g), "line 0\nline 1\nline 2\ndropped 1\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// TestQueueReopen checks that the output is reopened before waiting entries are written.
func TestQueueReopen(t *testing.T) {
	g := newGated()
	q := newQueue(g, lineNotice, nil)
	q.addLine(0)
	g.leave <- nil
	<-g.text
	q.reopen()
	q.addLine(1)
	if out, want := closeQueue(t, q, g), "line 0\nreopened\nline 1\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// TestQueueConcurrent adds from several goroutines: nothing is lost, and the lines of
// each are in order.
func TestQueueConcurrent(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	const writers, each = 8, 2000
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			for i := range each {
				fmt.Fprintf(w, "%d %d\n", n, i)
			}
		})
	}
	wg.Wait()
	w.Close()
	next := make([]int, writers)
	for line := range strings.Lines(out.String()) {
		var n, i int
		if _, err := fmt.Sscan(line, &n, &i); err != nil || next[n] != i {
			t.Fatalf("%q comes instead of %d", line, next[n])
		}
		next[n]++
	}
	if slices.Min(next) != each || w.Dropped() != 0 {
		t.Errorf("%d lines of each, %d dropped", next, w.Dropped())
	}
}

// halting accepts a number of bytes, and then fails until the number is raised.
type halting struct {
	room int
	got  bytes.Buffer
}

func (h *halting) Write(p []byte) (int, error) {
	n := min(h.room, len(p))
	h.room -= n
	h.got.Write(p[:n])
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// TestStreamTorn fills a disk at each byte of some lines: incomplete lines are counted,
// and the next entry begins a new line.
func TestStreamTorn(t *testing.T) {
	lines := []string{"one\n", "second\n", "the third\n"}
	var b batch
	size := 0
	for _, line := range lines {
		b.add([]byte(line), 0, 0)
		size += len(line)
	}
	for room := range size + 1 {
		disk := &halting{room: room}
		s := &stream{w: disk}
		done, kept := s.write(b)
		if done != len(lines) {
			t.Fatalf("%d bytes: %d lines were dealt with", room, done)
		}
		whole := strings.Join(lines[:kept], "")
		if !strings.HasPrefix(disk.got.String(), whole) || kept < len(lines) && len(whole)+len(lines[kept]) <= room {
			t.Errorf("%d bytes: %d lines are said to be there, got %q", room, kept, disk.got.String())
		}
		disk.room = 100
		var next batch
		next.add([]byte("next\n"), 0, 0)
		if _, kept := s.write(next); kept != 1 || !strings.HasSuffix(disk.got.String(), "\nnext\n") && room > 0 {
			t.Errorf("%d bytes: then %d, %q", room, kept, disk.got.String())
		}
	}
}

// TestStreamPieces checks that lines are written together as far as a pipe accepts them
// in one piece, and a longer line alone.
func TestStreamPieces(t *testing.T) {
	var b batch
	for _, size := range []int{1000, 3000, 96, 1, 5000, 4096, 10} {
		b.add([]byte(strings.Repeat("x", size-1)+"\n"), 0, 0)
	}
	s := &stream{w: &bytes.Buffer{}}
	var pieces []int
	for len(b.entries) > 0 {
		done, _ := s.write(b)
		pieces = append(pieces, done)
		b = b.after(done)
	}
	if want := []int{3, 1, 1, 1, 1}; !slices.Equal(pieces, want) {
		t.Errorf("got %v, want %v", pieces, want)
	}
}
