package decisions

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestFullDisk fills the disk under a history. It stands still, and goes on by itself.
func TestFullDisk(t *testing.T) {
	mount := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Skip("a small disk needs root: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(mount, syscall.MNT_DETACH) })
	w, r, _ := open(t, func(o *Options) { o.Dir = filepath.Join(mount, "decisions") })
	now := time.Now()
	write(t, w, refusal(0, now))
	ballast := filepath.Join(mount, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	n := 1
	for ; ; n++ {
		w.Record(refusal(n, now.Add(time.Duration(n))))
		if n%1000 == 0 {
			if err := w.Sync(t.Context()); err != nil && w.Stats().Queued > 0 { // not only the totals
				break
			}
		}
		if n > 100_000 {
			t.Fatal("the disk is never full")
		}
	}
	if s := w.Stats(); s.Err == "" || s.Queued == 0 {
		t.Errorf("a full disk: %+v", s)
	}
	if p, err := r.Find(t.Context(), Query{ID: "ID000000"}); err != nil || len(p.Decisions) != 1 {
		t.Errorf("a search on a full disk: %v, %v", p, err)
	}
	for range 2 * queueRows {
		w.Record(refusal(n, now)) // mail does not wait
	}
	if s := w.Stats(); s.Dropped == 0 {
		t.Errorf("a full queue: %+v", s)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	w.Configure(7*24*time.Hour, 1<<30, false)
	for w.Stats().Err != "" { // it tries again, and Sync hastens it
		w.Sync(t.Context())
	}
	write(t, w, refusal(n+1, now.Add(time.Hour)))
	for _, id := range []int{0, 1, n - 1, n + 1} {
		if p, err := r.Find(t.Context(), Query{ID: fmt.Sprintf("ID%06d", id)}); err != nil || len(p.Decisions) == 0 {
			t.Errorf("row %d afterwards: %v, %v", id, p, err)
		}
	}
}
