package blocklist

import (
	"runtime"
	"strings"
	"testing"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/disposable"
)

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one freed of pools
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestLookupAllocations(t *testing.T) {
	c, _ := disposableConfig(t)
	set := build(t, c)
	for _, address := range []string{"someone@mail.example.com", "someone+tag@a.b.example.com", "<>", "u@[192.0.2.1]"} {
		a := parse(t, address)
		for _, stage := range []verdict.Stage{verdict.Envelope, verdict.Header} {
			if n := testing.AllocsPerRun(100, func() { set.Lookup(stage, a) }); n != 0 {
				t.Errorf("%s: %v allocations", address, n)
			}
		}
	}
}

// A stage that does not exist is an error, and never an answer.
func TestLookupStage(t *testing.T) {
	set := build(t, fast(blockList("l", write(t, inDir(t, "l"), "listed.example\n"))))
	listed := parse(t, "a@listed.example")
	for _, stage := range []verdict.Stage{0, 4, verdict.Envelope | 4} {
		if _, err := set.Lookup(stage, listed); err == nil {
			t.Errorf("stage %d: Lookup answers", stage)
		}
		if _, err := set.Only(nil).LookupBlocks(stage, listed, sender.AllKinds); err == nil {
			t.Errorf("stage %d: LookupBlocks answers", stage)
		}
		if _, err := set.Only(nil).Trace(stage, listed); err == nil {
			t.Errorf("stage %d: Trace answers", stage)
		}
	}
}

// The real list: every valid line is found with its line number.
func TestRealList(t *testing.T) {
	c, path := disposableConfig(t)
	set := build(t, c)
	s := set.Stats()
	if l := s.Lists[0]; l.Entries != disposable.Count-disposableInvalid || l.Invalid != disposableInvalid || len(l.Problems) != disposableInvalid {
		t.Errorf("%d entries, %d invalid, problems %v", l.Entries, l.Invalid, l.Problems)
	}
	invalid := map[int]bool{}
	for _, p := range s.Lists[0].Problems {
		invalid[p.Line] = true
	}
	line := 0
	for text := range strings.Lines(string(disposable.Text())) {
		line++
		if invalid[line] {
			continue
		}
		a, err := sender.Parse("someone@www." + strings.TrimSpace(text))
		if err != nil {
			t.Fatal(err)
		}
		m := lookup(t, set, verdict.Envelope, a).Match
		// Where a parent domain is listed too, or both forms of an IDN, it is
		// a line of the same list.
		if m.List != "disposable" || m.File != path || m.Line == 0 || m.Line > line && strings.TrimSpace(text) == m.Entry {
			t.Fatalf("line %d, %s: %+v", line, text, m)
		}
	}
	if line != disposable.Count {
		t.Errorf("%d lines", line)
	}
	if s.Bits != 1<<28 || s.Hashes != 11 || s.Family != "classic" || s.FillRatio < 0.003 || s.FillRatio > 0.005 ||
		s.FPR <= 0 || s.EstimatedEntries < 90_000 || s.Capacity < 16.8e6 || s.Warning != "" {
		t.Errorf("%+v", s)
	}
}

// OnHit is told of the entries that counted, and of exceptions among them; an
// entry may ask for less than its list.
func TestOnHit(t *testing.T) {
	dir := inDir(t, "")
	a := blockList("a", write(t, dir+"a", "example.com\n!friend@example.com\n"))
	b := blockList("b", write(t, dir+"b", "www.example.com REJECT no\nexample.com 450 later\n"))
	b.Format, b.Stages = listfile.PostfixAccess, verdict.Envelope
	c := fast(a, b)
	var hits []string
	names := map[uint64]string{}
	c.OnHit = func(list string, hash uint64) { hits = append(hits, list+" "+names[hash]) }
	set := build(t, c)
	_, key, _, ok := set.Index("a")
	if !ok {
		t.Fatal("no index")
	}
	for _, name := range []string{"example.com", "www.example.com", "friend@example.com"} {
		names[key.Hash([]byte(name))] = name
	}
	for _, c := range []struct {
		stage   verdict.Stage
		address string
		want    string
		action  verdict.Action
	}{
		{verdict.Envelope, "u@example.com", "a example.com, b example.com", verdict.Reject},
		{verdict.Envelope, "friend@example.com", "a friend@example.com, b example.com", verdict.Defer},
		{verdict.Envelope, "u@www.example.com", "b www.example.com, a example.com", verdict.Reject},
		{verdict.Header, "u@www.example.com", "a example.com", verdict.Reject},
		{verdict.Header, "friend@example.com", "a friend@example.com", verdict.Accept},
		{verdict.Envelope, "u@example.net", "", verdict.Accept},
	} {
		hits = nil
		d := lookup(t, set, c.stage, parse(t, c.address))
		if got := strings.Join(hits, ", "); got != c.want || d.Action != c.action {
			t.Errorf("%v %s: %v, %q; want %v, %q", c.stage, c.address, d.Action, got, c.action, c.want)
		}
	}
}
