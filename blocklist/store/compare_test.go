package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// someday is a time to compare at.
var someday = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// ago is a version that went live some hours ago, with entries that do not expire.
func ago(hours float64, entries int) servedVersion {
	return servedVersion{Live: someday.Add(-time.Duration(hours * float64(time.Hour))), sizes: lasting(entries)}
}

func lasting(entries int) sizes {
	return sizes{Entries: entries, Left: [4]int{entries, entries, entries, entries}}
}

func forced(v servedVersion) servedVersion {
	v.Accepted, v.Forced = true, true
	return v
}

func accepted(v servedVersion) servedVersion {
	v.Accepted = true
	return v
}

// with is a version or an update with other counts.
func (n sizes) with(exceptions int, left ...int) sizes {
	n.Exceptions = exceptions
	copy(n.Left[:], left)
	return n
}

// Each list of versions, the newest last, an update, and what is wrong with it.
func TestCompare(t *testing.T) {
	ending := func(v servedVersion, left ...int) servedVersion {
		v.sizes = v.sizes.with(0, left...)
		return v
	}
	cases := []struct {
		name   string
		served []servedVersion
		update sizes
		url    bool
		want   error
	}{
		{"a new list", nil, lasting(16_000_000), true, nil},
		{"one that never had an entry", []servedVersion{ago(50, 0), ago(1, 0)}, lasting(16_000_000), true, nil},
		{"500 to 16 million", []servedVersion{ago(50, 500)}, lasting(16_000_000), true, ErrGrown},
		{"999 to 10,000", []servedVersion{ago(50, 999)}, lasting(10_000), true, nil},
		{"999 to 10,001", []servedVersion{ago(50, 999)}, lasting(10_001), false, ErrGrown},
		{"short to 10,000 to 100,000", []servedVersion{ago(50, 1), ago(1, 10_000)}, lasting(100_000), true, nil},
		{"and to more within the day", []servedVersion{ago(50, 1), ago(2, 10_000), ago(1, 100_000)}, lasting(100_001), true, ErrGrown},
		{"the same on the next day", []servedVersion{ago(50, 1), ago(26, 10_000), ago(25, 100_000)}, lasting(1_000_000), true, nil},

		{"wrong entries go", []servedVersion{ago(50, 3000), ago(1, 3800)}, lasting(3010), true, nil},
		{"and more than they", []servedVersion{ago(50, 3000), ago(1, 3800)}, lasting(2399), true, ErrShrunk},
		{"many wrong entries go", []servedVersion{ago(50, 3000), ago(1, 30_000)}, lasting(3010), true, nil},
		{"after five more versions", []servedVersion{ago(90, 3000), ago(5, 4000), ago(4, 4000), ago(3, 4000), ago(2, 4000), ago(1, 4000)}, lasting(3010), true, nil},
		{"of a new list", []servedVersion{ago(6, 3000), ago(5, 4000), ago(4, 4000), ago(3, 4000), ago(2, 4000), ago(1, 4000)}, lasting(3010), true, nil},
		{"when nobody remembers", []servedVersion{ago(90, 4000), ago(1, 4000)}, lasting(3010), true, ErrShrunk},
		{"short, then long, then nearly nothing", []servedVersion{ago(50, 900), ago(1, 5000)}, lasting(719), true, ErrShrunk},
		{"short, then long, then short again", []servedVersion{ago(50, 900), ago(1, 5000)}, lasting(720), true, nil},

		{"two steps down in a day", []servedVersion{ago(50, 3000), ago(1, 2400)}, lasting(1920), true, nil},
		{"three steps down in a day", []servedVersion{ago(50, 3000), ago(2, 2400), ago(1, 1920)}, lasting(1900), true, ErrShrunk},
		{"three steps in days", []servedVersion{ago(90, 3000), ago(60, 2400), ago(30, 1920)}, lasting(1536), true, nil},
		{"of a list that is new", []servedVersion{ago(2, 3000), ago(1.5, 2400), ago(1, 1920)}, lasting(1900), true, ErrShrunk},
		{"edits of one's own count as right", []servedVersion{ago(50, 3000), ago(2, 2400), accepted(ago(1, 1920))}, lasting(1900), false, nil},
		{"so does what was accepted", []servedVersion{ago(50, 3000), forced(ago(1, 1200))}, lasting(1100), true, nil},
		{"until it is undone", []servedVersion{ago(50, 3000), forced(ago(2, 1)), ago(1, 3000)}, lasting(2), true, ErrShrunk},
		{"growth that is undone, too", []servedVersion{ago(50, 1000), forced(ago(2, 50_000)), ago(1, 1000)}, lasting(50_001), true, ErrGrown},

		{"exceptions for all", []servedVersion{ago(50, 3000)}, sizes{Entries: 6000}.with(3000, 0, 0, 0, 0), true, ErrExceptions},
		{"exceptions for others", []servedVersion{ago(50, 3000)}, lasting(3000).with(601), false, ErrExceptions},
		{"a few", []servedVersion{ago(50, 3000)}, lasting(3000).with(600), true, nil},
		{"three steps of exceptions", []servedVersion{ago(50, 3000), {Live: someday, sizes: lasting(3000).with(600)}, {Live: someday, sizes: lasting(3000).with(1200)}}, lasting(3000).with(1201), true, ErrExceptions},
		{"after an empty version", []servedVersion{ago(50, 0), ago(1, 5000)}, lasting(5000).with(10), true, nil},
		{"of a short list", []servedVersion{ago(50, 999)}, lasting(0).with(999), true, nil},

		{"all expire in 8 s", []servedVersion{ago(50, 3000)}, lasting(3000).with(0, 3000, 0, 0, 0), true, ErrExpiring},
		{"in a list of one's own", []servedVersion{ago(50, 3000)}, lasting(3000).with(0, 3000, 0, 0, 0), false, nil},
		{"in two days", []servedVersion{ago(50, 3000)}, lasting(3000).with(0, 3000, 3000, 0, 0), true, ErrExpiring},
		{"in a month", []servedVersion{ago(50, 3000)}, lasting(3000).with(0, 3000, 3000, 3000, 0), true, ErrExpiring},
		{"a fifth of them", []servedVersion{ago(50, 3000)}, lasting(3000).with(0, 3000, 2400, 2400, 2400), true, nil},
		{"new ones that expire soon", []servedVersion{ago(50, 3000)}, lasting(9000).with(0, 9000, 3000, 3000, 3000), true, nil},
		{"as ever", []servedVersion{ending(ago(50, 3000), 3000, 2900, 2300, 0)}, lasting(3000).with(0, 3000, 2900, 2300, 0), true, nil},
		{"sooner than ever", []servedVersion{ending(ago(50, 3000), 3000, 2900, 2300, 0)}, lasting(3000).with(0, 3000, 0, 0, 0), true, ErrExpiring},
		{"what expired does not count", []servedVersion{ending(ago(50, 3000), 0, 0, 0, 0)}, lasting(10), true, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l := List{}
			err := l.guards().check(c.update, c.served, c.url, someday)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// Whatever a feed does within a day, hour after hour, step by step: the list keeps
// (1-max_shrink)² of its entries, and grows to no more than max_growth² times as many; and what
// was there yesterday is let in again.
func TestCompareProperty(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 11))
	l := List{}
	g := l.guards()
	for range unlessShort(300, 50) {
		start := 2000 + rnd.IntN(50_000)
		served := []servedVersion{ago(0, start)}
		first := served[0].Live
		served[0].Live = first.Add(-48 * time.Hour)
		now := first
		for range 200 {
			now = now.Add(time.Duration(rnd.IntN(7*60)) * time.Second)
			live := served[len(served)-1].Left[0]
			n := lasting(int(float64(live) * []float64{0.81, 0.9, 1.1, 3, 9.9}[rnd.IntN(5)]))
			if g.check(n, served, true, now) != nil {
				continue
			}
			served = addServed(served, servedVersion{Live: now, Sum: fmt.Sprint(now), sizes: n})
			if float64(n.Entries) < 0.64*float64(start)-1 || n.Entries > 100*start {
				t.Fatalf("%d entries, and %d a day ago", n.Entries, start)
			}
			if len(served) > maxServed {
				t.Fatalf("%d versions are remembered", len(served))
			}
		}
	}
}

// The versions that are remembered: the last ones, those that count as right, and between
// them one an hour.
func TestAddServed(t *testing.T) {
	var served []servedVersion
	for minute := range 4 * 24 * 60 {
		v := ago(0, minute)
		v.Live = someday.Add(time.Duration(minute) * time.Minute)
		v.Sum = fmt.Sprint(minute)
		served = addServed(served, v)
	}
	now := served[len(served)-1].Live
	settled := 0
	for i, v := range served {
		if i > 0 && !v.Live.After(served[i-1].Live) {
			t.Errorf("%v after %v", v.Live, served[i-1].Live)
		}
		if v.settled(now) {
			settled++
		}
	}
	if n := len(served); settled != comparedVersions || n < 24 || n > 24+2*comparedVersions+1 {
		t.Errorf("%d versions, %d of them settled", n, settled)
	}
	last := served[len(served)-1]
	last.Left[0], last.Forced = 0, true
	if again := addServed(served, last); len(again) != len(served) || again[len(again)-1] != last {
		t.Errorf("read again: %+v", again[len(again)-1])
	}
}
