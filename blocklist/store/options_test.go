package store

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
)

// choices are which of its values each option has.
type choices [8]int

// config is a configuration of one list that may be read in another way than
// before: everything that changes what an entry of it means.
func (n choices) config(path, other string) Config {
	l := blockList("spam", path)
	if n[0]%3 == 0 {
		l = allowList("spam", path)
	}
	l.Exact, l.AllowPublicSuffix = n[1]%2 == 0, n[2]%2 == 0
	l.Format = []listfile.Format{"", listfile.Plain, listfile.Hosts, listfile.Auto}[n[3]%4]
	l.OnProtected = []OnProtected{"", SkipProtected, HoldProtected, AcceptProtected}[n[4]%4]
	if n[5]%4 == 0 {
		l.Paths = append(l.Paths, other)
	}
	c := fast(l)
	c.Protect = [][]string{nil, {"example.net"}, {"example.com"}, {"mail.example.net"}}[n[6]%4]
	c.Filter = []blocklist.Filter{
		{}, {Kind: blocklist.KindSized}, {Kind: blocklist.KindSized, Family: "classic"}, {Kind: blocklist.KindFuse}, {Kind: blocklist.KindFuse, FPR: 0.01}, {Kind: blocklist.KindCounting},
	}[n[7]%6]
	return c
}

// Whatever a list was read with before, by the same Store or an earlier one with
// its state directory: what serves is what a new Store without any state makes of
// the files, and a trace says the same.
func TestOptionsAgainstAnew(t *testing.T) {
	path := inDir(t, "spam.txt")
	other := write(t, filepath.Join(filepath.Dir(path), "other.txt"), "example.com\n")
	write(t, path, "com\nexample.com\n.example.net\nu@example.org # until=2199-01-01 a reason\n!v@example.com\n")
	addresses := []string{
		"u@com", "u@a.com", "u@example.com", "v@example.com", "u@x.example.com", "u@example.net",
		"u@x.example.net", "u@mail.example.net", "u@example.org", "w@example.org",
	}
	state := inDir(t, "state")
	r := rand.New(rand.NewPCG(1, 2))
	n := choices{1, 1, 1, 1, 1, 1, 1, 1}
	var s *Store
	for round := range unlessShort(150, 50) {
		n[r.IntN(len(n))] = r.IntN(12) // one thing at a time, or another would hide what comes of it
		c := n.config(path, other)
		anew, _, wrong := Build(context.Background(), c)
		c.StateDir = state
		if s != nil && r.IntN(2) == 0 {
			must(t, s.Close())
			s = nil
		}
		var err error
		if s == nil {
			s = newStore(c, false)
			opened := s
			t.Cleanup(func() { opened.Close() })
			err = s.load(context.Background(), c)
		} else if err = s.Reload(context.Background(), c); err == nil {
			_, err = rescan(t, s) // waits for files to have been left alone
		}
		if (err == nil) != (wrong == nil) {
			t.Fatalf("round %d: %v, want %v", round, err, wrong)
		}
		if err != nil {
			must(t, s.Close())
			s = nil
			continue
		}
		for _, text := range addresses {
			for _, stage := range []verdict.Stage{verdict.Envelope, verdict.Header} {
				a := parse(t, text)
				want := lookup(t, anew, stage, a)
				if got := lookup(t, s.Set(), stage, a); !reflect.DeepEqual(got, want) {
					t.Errorf("round %d, %s: %+v, want %+v", round, text, got, want)
				}
				if trace, _, err := s.Set().Only(nil).Trace(stage, a, blocklist.FindOptions{}); err != nil || !reflect.DeepEqual(trace.Verdict, want) {
					t.Errorf("round %d, %s: trace %+v, %v, want %+v", round, text, trace.Verdict, err, want)
				}
			}
		}
	}
}
