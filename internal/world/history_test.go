package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/internal/atomicfile"
	"spamgate/internal/decisions"
)

// TestHistory plays the history of decisions on a disk that fails, with searches by pages, totals,
// restarts and files that are damaged.
//
// What is watched: a search finds what matches in the order of time, each decision once, however small
// its pages are; nothing is lost that is not counted as lost; totals and rankings count each decision
// once, and tell apart a bounded number of reasons; the history works again once the disk does, on a
// damaged file, too.
func TestHistory(t *testing.T) {
	run(t, &part{few: 20, draw: drawHistory, play: playHistory})
}

// A historyMove is what comes to the history, or what it is asked.
type historyMove struct {
	what string
	n    int // decisions, or minutes
	call int // of the disk, from which on all fail for a while; 0: none
	more int // decisions that come meanwhile
	seed uint64
}

func (m *historyMove) String() string { return fmt.Sprintf("%+v", *m) }

var historyMoves = []string{"record", "record", "record", "search", "search", "search", "search", "top", "top", "totals", "totals",
	"wait", "wait", "reasons", "accept", "restart", "damage"}

func drawHistory(r *rand.Rand) []move {
	moves := make([]move, 6+r.IntN(20))
	for i := range moves {
		m := &historyMove{what: historyMoves[r.IntN(len(historyMoves))], seed: r.Uint64()}
		switch m.what {
		case "wait":
			m.n = []int{1, 10, 70, 600, 1500}[r.IntN(5)]
		case "reasons":
			m.n = 40 + r.IntN(40)
		default:
			m.n = 1 + r.IntN(30)
		}
		if r.IntN(3) == 0 {
			m.call, m.more = 1+r.IntN(6), 1+r.IntN(5)
		}
		moves[i] = m
	}
	return moves
}

func playHistory(w *world, moves []move) (err error) {
	synctest.Test(w.T, func(*testing.T) { err = playHistoryMoves(w, moves) })
	return err
}

func playHistoryMoves(w *world, moves []move) (err error) {
	s := &historyWorld{world: w, ctx: context.Background(), doubtful: map[string]bool{}}
	s.now = time.Date(2026, 3, 1, 22, 0, 0, 0, time.UTC)
	s.dir = filepath.Join(w.dir, "decisions")
	s.reader = decisions.NewReader(s.dir)
	defer s.reader.Close()
	atomicfile.Hook = s.call
	defer func() { atomicfile.Hook = nil }()
	if err = s.open(); err != nil {
		return err
	}
	for i, m := range moves {
		if err = s.move(i+1, m.(*historyMove)); err != nil {
			break
		}
	}
	_ = s.recorder.Close()
	return err
}

// A historyWorld is a history, and the model of it: the decisions in the order in which they came.
type historyWorld struct {
	world    *world
	ctx      context.Context
	dir      string
	now      time.Time
	recorder *decisions.Recorder
	reader   *decisions.Reader
	all      []decisions.Decision
	accepts  []time.Time     // that have no rows
	doubtful map[string]bool // days whose files were damaged
	opened   int
	lost     int64 // before the last start

	mu                 sync.Mutex // guards what the writer's calls of the disk use, too
	calls, fails, more int
	r                  *rand.Rand
}

// call lets all calls of the disk fail from one on, and more mail come meanwhile. If it fails to say that the file of a day
// is still there, decisions are written twice rather than never: that is not played.
func (s *historyWorld) call(c atomicfile.Call) error {
	if c.Op == "stat" && !strings.HasSuffix(c.Paths[0], "totals.db") {
		return c.Do()
	}
	s.mu.Lock()
	s.calls++
	if s.fails == 0 || s.calls < s.fails {
		s.mu.Unlock()
		return c.Do()
	}
	defer s.mu.Unlock()
	for ; s.more > 0 && s.r.IntN(3) > 0; s.more-- {
		s.record("")
	}
	return syscall.EIO
}

func (s *historyWorld) open() (err error) {
	s.opened++
	s.recorder, err = decisions.Open(decisions.Options{
		Dir: s.dir, Keep: 400 * 24 * time.Hour, MaxBytes: 1 << 40, Now: func() time.Time { return s.now },
	})
	return err
}

func (s *historyWorld) move(n int, m *historyMove) (err error) {
	s.world.tell("%d. %s %d", n, m.what, m.n)
	synctest.Wait() // the writer waits, and sees the calls of this move
	s.mu.Lock()
	s.r = rand.New(rand.NewPCG(m.seed, 0))
	s.calls, s.fails, s.more = 0, m.call, m.more
	s.mu.Unlock()
	switch m.what {
	case "record":
		for range m.n {
			s.record("")
		}
	case "reasons":
		for i := range m.n {
			s.record(fmt.Sprint("made up ", i))
		}
	case "accept":
		for range m.n {
			s.recorder.Accepted(s.now)
			s.accepts = append(s.accepts, s.now)
		}
	}
	if err = s.settle(); err != nil {
		return err
	}
	switch m.what {
	case "wait":
		s.now = s.now.Add(time.Duration(m.n) * time.Minute)
	case "restart", "damage":
		err = s.restart(m.what == "damage")
	case "search":
		err = s.search()
	case "top":
		err = s.top()
	case "totals":
		err = s.totals()
	}
	return err
}

// settle waits until all that came is written, or counted as lost.
func (s *historyWorld) settle() (err error) {
	var stats decisions.Stats
	for try := range 20 {
		err = s.recorder.Sync(s.ctx)
		if stats = s.recorder.Stats(); err == nil && stats.Err == "" && stats.Queued == 0 {
			break
		}
		if try == 1 {
			s.mend()
		}
		time.Sleep(15 * time.Second)
	}
	s.mend()
	if err != nil || stats.Err != "" || stats.Queued != 0 {
		return fmt.Errorf("the history stands still: %v, %s, %d wait", err, stats.Err, stats.Queued)
	}
	return nil
}

// mend lets the disk work again.
func (s *historyWorld) mend() {
	synctest.Wait() // what fails, fails wholly
	s.mu.Lock()
	s.fails = 0
	s.mu.Unlock()
}

// restart ends the process and starts another one, on a damaged file.
func (s *historyWorld) restart(damage bool) error {
	if err := s.recorder.Close(); err != nil {
		return fmt.Errorf("the history does not end: %w", err)
	}
	s.lost += s.recorder.Stats().Dropped
	if files := must(filepath.Glob(filepath.Join(s.dir, "2026-*.db"))); damage && len(files) > 0 {
		file := files[s.r.IntN(len(files))]
		content := read(file)
		if s.r.IntN(2) == 0 { // a part of what describes the file
			if i := s.r.IntN(100); i != 18 { // with another there SQLite takes the file for one to read only
				content[i] ^= 1 << s.r.IntN(8)
			}
		} else { // a whole page
			page := content[4096*s.r.IntN(len(content)/4096):]
			for i := range page[:4096] {
				page[i] = byte(s.r.Uint32())
			}
		}
		check(os.WriteFile(file, content, 0o600))
		s.doubtful[filepath.Base(file)[:len(time.DateOnly)]] = true
		s.world.tell("    the file of %s", filepath.Base(file)[:len(time.DateOnly)])
	}
	return s.open()
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// record adds a decision, unlike all others.
func (s *historyWorld) record(reason string) {
	s.now = s.now.Add(time.Duration(s.r.IntN(3000)) * time.Millisecond)
	d := decisions.Decision{
		ID: fmt.Sprintf("id%d", len(s.all)/2), Time: s.now, Count: 1, Event: "refused", Level: "INFO", Entry: fmt.Sprint("entry", len(s.all)),
		Client: pick(s.r, "192.0.2.1:25", "192.0.2.2:26", "[2001:db8::1]:25"), Sender: pick(s.r, "ann@a.example", "bob@b.a.example", "<>", "eve@c.example"),
		Action: pick(s.r, "reject", "defer"), List: pick(s.r, "blocked", "dns", "other"), Reason: reason,
	}
	if reason == "" {
		d.Reason = pick(s.r, "", "spam")
	}
	for range s.r.IntN(3) {
		d.Recipients = append(d.Recipients, pick(s.r, "u@x.example", "v@y.example", "w@y.example"))
	}
	s.all = append(s.all, d)
	row := d
	s.recorder.Record(&row)
}

// sure reports whether a decision is in a file that was never damaged.
func (s *historyWorld) sure(d decisions.Decision) bool {
	return !s.doubtful[d.Time.UTC().Format(time.DateOnly)]
}

// query draws a search.
func (s *historyWorld) query() (q decisions.Query) {
	for range s.r.IntN(4) {
		switch s.r.IntN(8) {
		case 0:
			q.ID = fmt.Sprintf("ID%d", s.r.IntN(len(s.all)/2+1))
		case 1:
			q.Sender = pick(s.r, "ann@a.example", "Bob@b.a.example", "<>")
		case 2:
			q.Recipient = pick(s.r, "u@x.example", "V@y.example")
		case 3:
			q.Domain = pick(s.r, "a.example", "b.a.example", "example")
		case 4:
			q.List = pick(s.r, "blocked", "dns", "gone")
		case 5:
			q.Action = pick(s.r, "reject", "defer")
		case 6:
			q.Client = pick(s.r, "192.0.2.1", "2001:DB8::1")
		case 7:
			if s.r.IntN(2) == 0 {
				q.Since = s.now.Add(-time.Duration(s.r.IntN(3000)) * time.Minute)
			} else {
				q.Until = s.now.Add(-time.Duration(s.r.IntN(3000)) * time.Minute)
			}
		}
	}
	return q
}

// wanted says plainly what a query wants.
func wanted(q decisions.Query, d decisions.Decision) bool {
	_, domain, _ := strings.Cut(d.Sender, "@")
	return (q.ID == "" || strings.EqualFold(q.ID, d.ID)) && (q.Sender == "" || strings.EqualFold(q.Sender, d.Sender)) &&
		(q.Recipient == "" || slices.Contains(d.Recipients, strings.ToLower(q.Recipient))) &&
		(q.Domain == "" || strings.HasSuffix("."+domain, "."+q.Domain)) && (q.List == "" || q.List == d.List) &&
		(q.Action == "" || q.Action == d.Action) && (q.Client == "" || strings.Contains(d.Client, strings.ToLower(q.Client)+"]:") || strings.HasPrefix(d.Client, q.Client+":")) &&
		(q.Since.IsZero() || !d.Time.Before(q.Since)) && (q.Until.IsZero() || d.Time.Before(q.Until))
}

// A hurry is a context whose time is nearly over, so that each answer ends early.
type hurry struct{ context.Context }

func (hurry) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

// find reads all pages of a search, and returns the numbers of what it has found.
func (s *historyWorld) find(q decisions.Query, limit int) (found []string, err error) {
	ctx := s.ctx
	if s.r.IntN(4) == 0 {
		ctx = hurry{s.ctx}
	}
	for pages := 0; ; pages++ {
		q.Limit = limit
		p, err := s.reader.Find(ctx, q)
		switch {
		case err != nil:
			return nil, err
		case len(p.Decisions) > limit:
			return nil, fmt.Errorf("%d decisions on a page of %d", len(p.Decisions), limit)
		case pages > 1000+8*len(s.all):
			return nil, errors.New("the pages do not end")
		}
		for _, d := range p.Decisions {
			if s.sure(d) {
				found = append(found, d.Entry)
			}
		}
		if q.Before = p.Next; p.Next == "" {
			return found, nil
		}
	}
}

// search compares a search with one of the model.
func (s *historyWorld) search() error {
	q := s.query()
	found, err := s.find(q, 1+s.r.IntN(12))
	if err != nil {
		return fmt.Errorf("a search for %+v: %w", q, err)
	}
	var want []string
	for _, d := range slices.Backward(s.all) {
		if s.sure(d) && wanted(q, d) {
			want = append(want, d.Entry)
		}
	}
	s.world.tell("    %d of %d", len(found), len(s.all))
	if lost := s.lost + s.recorder.Stats().Dropped; lost > 0 {
		want = slices.DeleteFunc(want, func(e string) bool { return !slices.Contains(found, e) && lost > 0 })
	}
	if !slices.Equal(found, want) {
		return fmt.Errorf("a search for %+v finds %v, not %v", q, found, want)
	}
	return nil
}

// top compares a ranking with one of the model.
func (s *historyWorld) top() error {
	if len(s.doubtful) > 0 || s.lost+s.recorder.Stats().Dropped > 0 {
		return nil
	}
	q, kind := s.query(), pick(s.r, decisions.TopSenders, decisions.TopLists)
	since := s.now.Add(-time.Duration(s.r.IntN(3000)) * time.Minute)
	q.Since, q.Until = since, time.Time{}
	got, err := s.reader.Top(s.ctx, kind, since, 100, q)
	if err != nil {
		return err
	}
	want := map[string]int64{}
	for _, d := range s.all {
		if name := map[string]string{decisions.TopSenders: d.Sender, decisions.TopLists: d.List}[kind]; wanted(q, d) {
			want[name]++
		}
	}
	s.world.tell("    %d %s", len(got), kind)
	for _, n := range got {
		if want[n.Name] != n.Count {
			return fmt.Errorf("top %s of %+v: %s has %d, not %d", kind, q, n.Name, n.Count, want[n.Name])
		}
		delete(want, n.Name)
	}
	if len(want) > 0 {
		return fmt.Errorf("top %s of %+v lacks %v", kind, q, want)
	}
	return nil
}

// totals compares the counts of a span of time with those of the model.
func (s *historyWorld) totals() error {
	span := pick(s.r, 2*time.Hour, 30*time.Hour, 40*24*time.Hour)
	since := s.now.Add(-span + time.Minute)
	got, err := s.reader.Totals(s.ctx, since, since.Add(span))
	if err != nil {
		return err
	}
	step := map[time.Duration]time.Duration{2 * time.Hour: time.Minute, 30 * time.Hour: time.Hour, 40 * 24 * time.Hour: 24 * time.Hour}[span]
	want := map[string]int64{}
	count := func(t time.Time, action, list string) {
		if start := t.Truncate(step); !start.Before(since.Truncate(step)) {
			want[fmt.Sprint(start, action, list)]++
		}
	}
	for _, d := range s.all {
		count(d.Time, d.Action, d.List)
	}
	for _, t := range s.accepts {
		count(t, "accept", "")
	}
	reasons := map[time.Time]map[string]bool{}
	for _, t := range got {
		want[fmt.Sprint(t.Start, t.Action, t.List)] -= t.Count
		if reasons[t.Start] == nil {
			reasons[t.Start] = map[string]bool{}
		}
		reasons[t.Start][t.Reason] = true
	}
	s.world.tell("    by %s: %d", step, len(got))
	for what, n := range want {
		if n != 0 {
			return fmt.Errorf("totals by %s: %d are missing of %s", step, n, what)
		}
	}
	for start, some := range reasons {
		if most := 52 * s.opened; len(some) > most && step < 24*time.Hour {
			return fmt.Errorf("totals by %s: %s has %d reasons, more than %d", step, start, len(some), most)
		}
	}
	return nil
}
