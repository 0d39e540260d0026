package decisions

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// smallBlocks makes blocks of a few rows, so that few rows have many blocks.
func smallBlocks(t *testing.T) {
	rows, recent := blockRows, blockRecent
	t.Cleanup(func() { blockRows, blockRecent = rows, recent })
	blockRows, blockRecent = 64, 8
}

// words of random decisions and queries.
var (
	someDomains = []string{"a.example", "b.a.example", "c.b.a.example", "example.org", "B.A.EXAMPLE", "xn--bcher-kva.example",
		strings.Repeat("l.", 14) + "deep.example", "[192.0.2.1]"}
	someLocals  = []string{"ann", "Bob", "*", "x.y", "'quoted'", "sp ace", "\xff", "\x00"}
	someLists   = []string{"", "blocked", "dns", "allowed"}
	someActions = []string{"accept", "reject", "defer", "monitor"}
	someEvents  = []string{"accepted", "refused", "monitored", "refused by the next hop"}
	someClients = []string{"192.0.2.1:25", "192.0.2.1:26", "[2001:db8::1]:25", "192.0.2.9", "", "unix"}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func randomAddress(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return "<>"
	case 1:
		return "3f2a-hash"
	}
	return pick(r, someLocals) + "@" + pick(r, someDomains)
}

func randomAddresses(r *rand.Rand, most int) (all []string) {
	for range r.IntN(most + 1) {
		all = append(all, randomAddress(r))
	}
	return all
}

func randomDecision(r *rand.Rand, i int, instant time.Time) *Decision {
	return &Decision{
		ID: fmt.Sprintf("ID%d", i/2), Time: instant, Event: pick(r, someEvents), Action: pick(r, someActions),
		Client: pick(r, someClients), Sender: randomAddress(r), Recipients: randomAddresses(r, 3),
		HeaderSenders: randomAddresses(r, 2), List: pick(r, someLists), Entry: fmt.Sprint("entry", i), // unlike others: not merged
		Reply: "550 no", Size: int64(i), Duration: time.Duration(i), MessageID: "<\u00e9\">",
		Attrs: []Attr{{"tls", "none"}, {"refused_for", "<who@a.example>"}},
	}
}

func randomQuery(r *rand.Rand, start time.Time, span time.Duration) (q Query) {
	for range 1 + r.IntN(2) {
		switch r.IntN(10) {
		case 0:
			q.ID = fmt.Sprintf("id%d", r.IntN(500))
		case 1:
			q.Address = randomAddress(r)
		case 2:
			q.Sender = randomAddress(r)
		case 3:
			q.Recipient = randomAddress(r)
		case 4:
			q.Domain = pick(r, append([]string{"example", strings.Repeat("l.", 12) + "deep.example", "l.deep.example"}, someDomains...))
		case 5:
			q.List = pick(r, someLists)
		case 6:
			q.Action = pick(r, someActions)
		case 7:
			q.Client = pick(r, []string{"192.0.2.1", "2001:DB8::1", "192.0.2.7"})
		case 8:
			q.Since = start.Add(time.Duration(r.Int64N(int64(span))))
		case 9:
			q.Until = start.Add(time.Duration(r.Int64N(int64(span))))
		}
	}
	if r.IntN(4) == 0 {
		q.RecipientDomains = []string{}
		for range r.IntN(3) {
			q.RecipientDomains = append(q.RecipientDomains, pick(r, someDomains))
		}
	}
	q.Limit = 20 + r.IntN(200)
	return q
}

// findAll reads all pages of a query.
func findAll(t *testing.T, r *Reader, q Query) (all []Decision) {
	t.Helper()
	for {
		p, err := r.Find(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Decisions) > q.Limit {
			t.Fatalf("%d rows on a page of %d", len(p.Decisions), q.Limit)
		}
		all = append(all, p.Decisions...)
		if q.Before = p.Next; p.Next == "" {
			return all
		}
	}
}

// TestFindLikeSlice compares Find with a search in memory: two processes write, over three days, in which the
// clock goes back now and then.
func TestFindLikeSlice(t *testing.T) {
	smallBlocks(t)
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		start := time.Date(2026, 11, 20, 22, 0, 0, 0, time.UTC)
		var options Options
		w, reader, _ := open(t, func(o *Options) {
			at(start.Add(4 * 24 * time.Hour))(o)
			o.All, o.Keep = true, 99*24*time.Hour
			options = *o
		})
		second, err := Open(options)
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		when, newest := start, start
		var all []Decision
		for i := range 700 {
			when = when.Add(time.Duration(1+rnd.IntN(300)) * time.Second)
			if seed > 0 && rnd.IntN(100) == 0 {
				when = when.Add(-time.Duration(rnd.IntN(30)) * time.Hour)
			}
			newest = maxTime(newest, when)
			d := randomDecision(rnd, i, when)
			stored := *d
			stored.Trim(when)
			all = append(all, stored)
			to := pick(rnd, []*Recorder{w, second})
			if to.Record(d); rnd.IntN(20) == 0 {
				write(t, w)
				write(t, second)
			}
		}
		write(t, w)
		write(t, second)
		slices.SortStableFunc(all, func(a, b Decision) int { return b.Time.Compare(a.Time) })
		for i := range 60 {
			q := randomQuery(rnd, start, newest.Sub(start)+time.Hour)
			got := findAll(t, reader, q)
			var want []Decision
			for _, d := range all {
				if matchesPlainly(q, d) && q.Cut(&d) {
					want = append(want, d)
				}
			}
			if seed > 0 { // the order is that of the clock
				byEntry := func(a, b Decision) int { return cmp.Compare(a.Entry, b.Entry) }
				slices.SortFunc(got, byEntry)
				slices.SortFunc(want, byEntry)
			}
			if len(got) != len(want) {
				t.Fatalf("seed %d, query %d %+v: %d rows, want %d", seed, i, q, len(got), len(want))
			}
			for j := range got {
				normal(&got[j])
				normal(&want[j])
				if !reflect.DeepEqual(got[j], want[j]) {
					t.Fatalf("seed %d, query %d %+v: row %d is\n%+v, want\n%+v", seed, i, q, j, got[j], want[j])
				}
			}
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// normal makes empty slices nil.
func normal(d *Decision) {
	if len(d.Recipients) == 0 {
		d.Recipients = nil
	}
	if len(d.HeaderSenders) == 0 {
		d.HeaderSenders = nil
	}
	if len(d.Attrs) == 0 {
		d.Attrs = nil
	}
}

// matchesPlainly is Match, told in another way.
func matchesPlainly(q Query, d Decision) bool {
	locate := func(address string) string {
		_, domain, _ := strings.Cut(foldAddress(address), "@")
		return domain
	}
	var mine []string
	for _, r := range d.Recipients {
		visible := q.RecipientDomains == nil
		for _, domain := range q.RecipientDomains {
			visible = visible || locate(r) == strings.ToLower(domain)
		}
		if visible {
			mine = append(mine, foldAddress(r))
		}
	}
	if q.RecipientDomains != nil && len(mine) == 0 {
		return false
	}
	var from []string
	below := false
	for _, s := range append([]string{d.Sender}, d.HeaderSenders...) {
		from = append(from, foldAddress(s))
		below = below || ("."+locate(s)+"/") != "./" && strings.HasSuffix("."+locate(s), "."+strings.ToLower(q.Domain))
	}
	has := func(all []string, wanted string) bool { return slices.Contains(all, foldAddress(wanted)) }
	host, _, _ := strings.Cut(strings.Trim(strings.ToLower(d.Client), "["), ":2")
	host = strings.TrimSuffix(host, "]")
	switch {
	case q.ID != "" && !strings.EqualFold(d.ID, q.ID),
		q.Address != "" && !has(from, q.Address) && !has(mine, q.Address),
		q.Sender != "" && !has(from, q.Sender),
		q.Recipient != "" && !has(mine, q.Recipient),
		q.Domain != "" && !below,
		q.List != "" && q.List != d.List,
		q.Action != "" && q.Action != d.Action,
		q.Client != "" && host != strings.ToLower(q.Client),
		!q.Since.IsZero() && d.Time.Before(q.Since),
		!q.Until.IsZero() && !d.Time.Before(q.Until):
		return false
	}
	return true
}
