package decisions

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"spamgate/internal/sqlite"
)

// testClock is a clock that the test sets. It begins on November 1, 2026, at 11:00.
type testClock struct{ since atomic.Int64 }

func (c *testClock) add(d time.Duration) { c.since.Add(int64(d)) }

func (c *testClock) now() time.Time {
	return time.Date(2026, 11, 1, 11, 0, 0, 0, time.UTC).Add(time.Duration(c.since.Load()))
}

// days returns the days of the database files, in the order of their numbers.
func days(t *testing.T, dir string) (all []string) {
	t.Helper()
	files, err := newFolder(dir).files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all = append(all, f.day[5:])
	}
	return all
}

// TestKeep removes files whose rows are all too old.
func TestKeep(t *testing.T) {
	var clock testClock
	clock.add(time.Hour)
	w, r, dir := open(t, func(o *Options) { o.Keep, o.Now = 3*24*time.Hour, clock.now })
	for i := range 10 {
		write(t, w, refusal(i, clock.now()))
		clock.add(24 * time.Hour)
	}
	write(t, w, refusal(10, clock.now()))
	if got := strings.Join(days(t, dir), " "); got != "11-08 11-09 11-10 11-11" {
		t.Error(got)
	}
	if p, err := r.Find(t.Context(), Query{}); err != nil || len(p.Decisions) != 4 || p.Reach.Day() != 8 {
		t.Errorf("%d rows back to %v: %v", len(p.Decisions), p.Reach, err)
	}
	w.Configure(24*time.Hour, 1<<30, false)
	clock.add(2 * time.Minute)
	write(t, w, refusal(11, clock.now()))
	if got := strings.Join(days(t, dir), " "); got != "11-10 11-11" {
		t.Error(got)
	}
	if s := w.Stats(); s.Files != 2 || s.Oldest.Day() != 10 || s.Bytes == 0 {
		t.Errorf("%+v", s)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 2*4+3 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestKeepWithoutMail removes the last file, too, when its rows are too old and no other row comes.
func TestKeepWithoutMail(t *testing.T) {
	var clock testClock
	w, r, dir := open(t, func(o *Options) { o.Keep, o.Now = 3*24*time.Hour, clock.now })
	write(t, w, refusal(0, clock.now()))
	for day := range 4 {
		if p, err := r.Find(t.Context(), Query{}); err != nil || len(p.Decisions) != 1 {
			t.Errorf("after %d days: %d rows, %v", day, len(p.Decisions), err)
		}
		clock.add(24 * time.Hour)
		write(t, w)
	}
	if got := days(t, dir); got != nil {
		t.Errorf("after 4 days: %q", got)
	}
	write(t, w, refusal(1, clock.now()))
	if got := strings.Join(days(t, dir), " "); got != "11-05" {
		t.Error(got)
	}
}

// TestMaxBytes writes much more than the history may keep, in small rows and in the largest.
func TestMaxBytes(t *testing.T) {
	t.Run("small rows", func(t *testing.T) {
		testMaxBytes(t, 4<<20, 30_000, func(d *Decision) { d.Helo = strings.Repeat("x", 500) })
	})
	t.Run("large rows", func(t *testing.T) {
		testMaxBytes(t, 16<<20, 1000, func(d *Decision) {
			for i := range 80 {
				d.Recipients = append(d.Recipients, fmt.Sprintf("%s%d.%s@example.net", strings.Repeat("r", 200), i, d.ID))
				d.HeaderSenders = append(d.HeaderSenders, fmt.Sprintf("%s%d.%s@example.org", strings.Repeat("s", 200), i, d.ID))
			}
		})
	})
}

func testMaxBytes(t *testing.T, most int64, rows int, fill func(*Decision)) {
	w, r, dir := open(t, func(o *Options) { o.MaxBytes = most })
	now := time.Now()
	for i := range rows {
		d := refusal(i, now.Add(time.Duration(i)))
		fill(d)
		if w.Record(d); i%1000 == 999 {
			write(t, w)
			if bytes := diskBytes(t, dir); bytes > most {
				t.Fatalf("%d bytes after %d rows", bytes, i)
			}
		}
	}
	if p, err := r.Find(t.Context(), Query{ID: fmt.Sprintf("ID%06d", rows-1)}); err != nil || len(p.Decisions) != 1 {
		t.Errorf("the newest row: %v, %v", p, err)
	}
	if p, err := r.Find(t.Context(), Query{ID: "ID000000"}); err != nil || len(p.Decisions) != 0 {
		t.Errorf("the oldest row: %v, %v", p, err)
	}
	if s := w.Stats(); s.Rows != int64(rows) || s.Files < 2 || s.Bytes > most {
		t.Errorf("%+v", s)
	}
}

// TestClockJumps lets the clock jump ahead and back, with and without a restart between. No row is lost, all are found,
// and what is old in the end is removed.
func TestClockJumps(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			var clock testClock
			clock.add(9 * 24 * time.Hour)
			o := Options{Dir: filepath.Join(t.TempDir(), "decisions"), Keep: 7 * 24 * time.Hour, MaxBytes: 1 << 30, Now: clock.now}
			r := NewReader(o.Dir)
			defer r.Close()
			w, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { w.Close() }()
			const year = 365 * 24 * time.Hour
			for i, jump := range []time.Duration{0, time.Hour, -24 * time.Hour, 24 * time.Hour, year, time.Hour, -year, time.Minute, -2 * year, time.Hour, 2 * year} {
				if restart {
					if err := w.Close(); err != nil {
						t.Fatal(err)
					}
				}
				clock.add(jump)
				if restart {
					if w, err = Open(o); err != nil {
						t.Fatal(err)
					}
				}
				for k := range 2 {
					clock.add(2 * time.Minute)
					write(t, w, refusal(2*i+k, clock.now()))
				}
				for k := range 2*i + 2 {
					if p, err := r.Find(t.Context(), Query{ID: fmt.Sprintf("ID%06d", k)}); err != nil || len(p.Decisions) != 1 {
						t.Fatalf("after jump %d row %d: %d rows, %v", i, k, len(p.Decisions), err)
					}
				}
				q := Query{Since: clock.now(), Until: clock.now().Add(1)}
				if p, err := r.Find(t.Context(), q); err != nil || len(p.Decisions) != 1 {
					t.Fatalf("after jump %d by time: %d rows, %v", i, len(p.Decisions), err)
				}
			}
			for i := range 30 { // a month later
				clock.add(24 * time.Hour)
				write(t, w, refusal(100+i, clock.now()))
			}
			if got := days(t, o.Dir); len(got) != 8 || slices.Contains(got, "11-10") {
				t.Errorf("a month later: %v", got)
			}
		})
	}
}

// TestNewerVersion leaves a file of a newer version alone, and says so once.
func TestNewerVersion(t *testing.T) {
	var log strings.Builder
	w, r, dir := open(t, nil)
	now := time.Now()
	write(t, w, refusal(1, now))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*.db"))
	for _, name := range names { // the totals, too
		db, err := sqlite.Open(name, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Exec("PRAGMA user_version = 2; CREATE TABLE newer (x); INSERT INTO newer VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		db.Close()
	}
	w, err := Open(Options{Dir: dir, Keep: time.Hour, MaxBytes: 1 << 30, Logger: textLogger(&log)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range 3 {
		w.Record(refusal(2+i, now))
		w.Sync(t.Context()) // the totals cannot be written
	}
	if p, err := r.Find(t.Context(), Query{}); err != nil || len(p.Decisions) != 3 {
		t.Errorf("%v, %v", p, err)
	}
	if totals, err := r.Totals(t.Context(), now.Add(-time.Hour), now.Add(time.Hour)); err != nil || len(totals) != 0 {
		t.Errorf("%v, %v", totals, err)
	}
	if err := w.Close(); err == nil {
		t.Error("Close does not tell that totals were lost")
	}
	if n := strings.Count(log.String(), "not used"); n != 1 {
		t.Errorf("said %d times: %s", n, log.String())
	}
	if n := strings.Count(log.String(), "stands still"); n != 1 {
		t.Errorf("said %d times: %s", n, log.String())
	}
	for _, name := range names {
		db, err := sqlite.Open(name, true)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := db.Int("SELECT x FROM newer"); err != nil || n != 1 {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		db.Close()
	}
}

// TestRestart opens a history again and again: the same file goes on, unless another process has it.
func TestRestart(t *testing.T) {
	w, r, dir := open(t, nil)
	now := time.Now()
	for i := range 5 {
		write(t, w, refusal(i, now))
		other, err := Open(Options{Dir: dir, Keep: time.Hour, MaxBytes: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		write(t, other, refusal(100+i, now))
		if err := w.Close(); err != nil { // a handover
			t.Fatal(err)
		}
		w = other
	}
	defer w.Close()
	if got := days(t, dir); len(got) > 3 { // one more at midnight
		t.Error(got)
	}
	if p, err := r.Find(t.Context(), Query{}); err != nil || len(p.Decisions) != 10 {
		t.Errorf("%d rows, %v", len(p.Decisions), err)
	}
}
