package decisions

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/sqlite"
)

// Totals are kept in a database of their own: each minute for two days, each hour for 400 days.
const (
	totalsName  = "totals.db"
	keepMinutes = 48 * time.Hour
	keepHours   = 400 * 24 * time.Hour

	// In a minute, and in an hour, so many reasons are told apart. The others count as otherReasons.
	totalReasons = 50
	totalPending = 20000 // are not written yet, at most
	otherReasons = "other reasons"
)

const totalsSchema = `
PRAGMA journal_mode = WAL;
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS totals (
	step INTEGER, start INTEGER, action TEXT, list TEXT, reason TEXT, count INTEGER NOT NULL,
	PRIMARY KEY (step, start, action, list, reason)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS clock (one INTEGER PRIMARY KEY CHECK (one = 1), seen INTEGER NOT NULL, trusted INTEGER NOT NULL);
PRAGMA user_version = 1;
COMMIT;`

// alike is what the decisions of a total have in common.
type alike struct {
	step, start          int64 // seconds
	action, list, reason string
}

// tally counts decisions until they are written.
type tally struct {
	mu      sync.Mutex
	pending map[alike]int64
	minutes reasons
	hours   reasons
}

// reasons are those of a step that are told apart.
type reasons struct {
	start int64
	seen  map[string]struct{}
}

// name returns the reason under which a decision counts.
func (r *reasons) name(start int64, reason string) string {
	if r.start != start || r.seen == nil {
		r.start, r.seen = start, map[string]struct{}{}
	}
	if _, ok := r.seen[reason]; ok || reason == "" {
		return reason
	}
	if len(r.seen) >= totalReasons {
		return otherReasons
	}
	reason = strings.Clone(reason)
	r.seen[reason] = struct{}{}
	return reason
}

// add counts decisions that are alike.
func (t *tally) add(instant time.Time, action, list, reason string, n int64) {
	minute, hour := instant.Unix()/60*60, instant.Unix()/3600*3600
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		t.pending = map[alike]int64{}
	}
	for _, a := range [...]alike{
		{60, minute, action, list, t.minutes.name(minute, reason)},
		{3600, hour, action, list, t.hours.name(hour, reason)},
	} {
		if _, ok := t.pending[a]; ok || len(t.pending) < totalPending {
			t.pending[a] += n
		}
	}
}

// take returns what is pending.
func (t *tally) take() map[alike]int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	pending := t.pending
	t.pending = nil
	return pending
}

// putBack makes what could not be written pending again.
func (t *tally) putBack(all map[alike]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == nil {
		t.pending = all
		return
	}
	for a, n := range all {
		t.pending[a] += n
	}
}

// count adds a decision, if it tells what became of a message.
func (t *tally) count(d *Decision) {
	if verdict.EventOf(d.Event).Note {
		return
	}
	action, reason := d.outcome()
	t.add(d.Time, action, cut(d.List, maxWord), reason, int64(max(d.Count, 1)))
}

// outcome returns the action and the reason under which a decision counts: those of the gate, or what the
// client's reply and the event say.
func (d *Decision) outcome() (action, reason string) {
	action, reason = d.Action, d.Reason
	if !verdict.EventOf(d.Event).Plain {
		if reason == "" {
			reason = d.Event
		}
		if action == "accept" || action == "" {
			switch {
			case strings.HasPrefix(d.Reply, "5"):
				action = "reject"
			case strings.HasPrefix(d.Reply, "4"):
				action = "defer"
			}
		}
	}
	return cut(action, maxWord), cut(reason, maxWord)
}

// totalsFile is the database of the totals, for writing.
type totalsFile struct {
	folder folder
	info   os.FileInfo // of the file as it was opened
	db     *sqlite.DB
	upsert *sqlite.Stmt
}

// open opens the database unless it is open, and still in its place.
func (t *totalsFile) open() (err error) {
	info, err := t.folder.check(totalsName)
	if t.db != nil && err == nil && os.SameFile(info, t.info) {
		return nil
	}
	t.close()
	if err := t.folder.tree.MakeDirs(t.folder.name); err != nil {
		return err
	}
	if _, err := t.folder.check(totalsName); err != nil {
		if err := t.folder.create(totalsName); err != nil {
			return err
		}
	}
	if t.info, err = t.folder.check(totalsName); err != nil {
		return err
	}
	if t.db, err = sqlite.Open(t.folder.path(totalsName), false); err != nil {
		return err
	}
	t.db.BusyTimeout(int(writeTimeout.Milliseconds()))
	v, err := t.db.Int("PRAGMA user_version")
	switch {
	case err != nil:
	case v > version:
		err = errVersion
	default:
		err = t.db.Exec("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -512;" + totalsSchema)
	}
	if err == nil {
		t.upsert, err = t.db.Prepare(`INSERT INTO totals VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count`)
	}
	if err != nil {
		t.close()
	}
	return err
}

func (t *totalsFile) close() {
	if t.upsert != nil {
		t.upsert.Close()
	}
	if t.db != nil {
		t.db.Close()
	}
	t.upsert, t.db = nil, nil
}

// write adds to the totals.
func (t *totalsFile) write(all map[alike]int64) error {
	err := t.tryWrite(all)
	if err != nil {
		t.close()
	}
	if err = otherSchema(err); isDamaged(err) || err == errVersion {
		err = fmt.Errorf("%s: %w; remove it: the counts of the past are lost, decisions are not", t.folder.path(totalsName), err)
	}
	return err
}

func (t *totalsFile) tryWrite(all map[alike]int64) error {
	if err := t.open(); err != nil {
		return err
	}
	return t.db.Within("BEGIN IMMEDIATE", func() error {
		for a, n := range all {
			t.upsert.BindInt(1, a.step)
			t.upsert.BindInt(2, a.start)
			t.upsert.BindText(3, a.action)
			t.upsert.BindText(4, a.list)
			t.upsert.BindText(5, a.reason)
			t.upsert.BindInt(6, n)
			if err := t.upsert.Run(); err != nil {
				return err
			}
		}
		return nil
	})
}

// prune removes totals that are too old.
func (t *totalsFile) prune(now time.Time) {
	if t.open() == nil {
		t.db.Exec(fmt.Sprintf("DELETE FROM totals WHERE step = 60 AND start < %d; DELETE FROM totals WHERE step = 3600 AND start < %d",
			now.Add(-keepMinutes).Unix(), now.Add(-keepHours).Unix()))
	}
}

// clock returns what the last look at the clock noted. If that is not known the newest file stands for it.
func (t *totalsFile) clock(now time.Time, all []file) clock {
	if t.open() == nil {
		if s, err := t.db.Prepare("SELECT seen, trusted FROM clock"); err == nil {
			defer s.Close()
			if found, err := s.Step(); err == nil && found {
				defer s.Reset()
				return clock{time.Unix(s.Int(0), 0), time.Unix(s.Int(1), 0)}
			}
		}
	}
	if len(all) == 0 {
		return clock{seen: now}
	}
	return clock{seen: time.Unix(0, all[len(all)-1].end())}
}

// keepClock notes a look at the clock.
func (t *totalsFile) keepClock(c clock) {
	if t.open() == nil {
		t.db.Exec(fmt.Sprintf("INSERT INTO clock VALUES (1, %d, %d) ON CONFLICT DO UPDATE SET seen = excluded.seen, trusted = excluded.trusted",
			c.seen.Unix(), c.trusted.Unix()))
	}
}
