package decisions

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFindFields searches by each field.
func TestFindFields(t *testing.T) {
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	w, r, _ := open(t, at(now))
	write(t, w,
		&Decision{ID: "AAA", Time: now, Event: "refused", Action: "reject", Client: "192.0.2.1:25", Sender: "ann@Mail.Example.org",
			Recipients: []string{"bob@example.net", "eve@example.com"}, List: "blocked", HeaderSenders: []string{"boss@bücher.example"}},
		&Decision{ID: "BBB", Time: now.Add(time.Second), Event: "accepted", Action: "accept", Client: "[2001:db8::1]:25", Sender: "",
			Recipients: []string{"\"bob\"@example.net"}, List: "allowed"},
		&Decision{ID: "CCC", Time: now.Add(2 * time.Second), Event: "refused", Action: "defer", Client: "192.0.2.1", Sender: "*@example.org",
			Recipients: []string{"*@example.com"}, List: "dns"},
		&Decision{ID: "CCC", Time: now.Add(3 * time.Second), Event: "monitored", Action: "monitor", Sender: "h4sh", List: "watched"},
	)
	for _, test := range []struct {
		q    Query
		want string
	}{
		{Query{}, "CCC CCC BBB AAA"},
		{Query{ID: "aaa"}, "AAA"},
		{Query{ID: "CCC"}, "CCC CCC"},
		{Query{ID: "AA"}, ""},
		{Query{Sender: "ANN@mail.example.org"}, "AAA"},
		{Query{Sender: "boss@xn--bcher-kva.example"}, "AAA"},
		{Query{Sender: "<>"}, "BBB"},
		{Query{Sender: "h4sh"}, "CCC"},
		{Query{Sender: "*@example.org"}, "CCC"},
		{Query{Sender: "bob@example.net"}, ""},
		{Query{Recipient: "bob@EXAMPLE.net"}, "BBB AAA"},
		{Query{Recipient: "eve@example.com"}, "AAA"},
		{Query{Recipient: "ann@mail.example.org"}, ""},
		{Query{Address: "ann@mail.example.org"}, "AAA"},
		{Query{Address: "eve@example.com"}, "AAA"},
		{Query{Domain: "example.org"}, "CCC AAA"},
		{Query{Domain: "Mail.example.org."}, "AAA"},
		{Query{Domain: "org"}, "CCC AAA"},
		{Query{Domain: "ample.org"}, ""},
		{Query{Domain: "bücher.example"}, "AAA"},
		{Query{Domain: "example.net"}, ""},
		{Query{List: "blocked"}, "AAA"},
		{Query{List: "Blocked"}, ""},
		{Query{Action: "defer"}, "CCC"},
		{Query{Client: "192.0.2.1"}, "CCC AAA"},
		{Query{Client: "2001:0DB8::1"}, "BBB"},
		{Query{Since: now.Add(time.Second)}, "CCC CCC BBB"},
		{Query{Until: now.Add(time.Second)}, "AAA"},
		{Query{Since: now.Add(time.Second), Until: now.Add(2 * time.Second)}, "BBB"},
		{Query{Since: now.Add(time.Hour)}, ""},
		{Query{Client: "192.0.2.1", Action: "reject"}, "AAA"},
		{Query{Client: "192.0.2.1", Action: "accept"}, ""},
		{Query{RecipientDomains: []string{"EXAMPLE.com"}}, "CCC AAA"},
		{Query{RecipientDomains: []string{"example.net", "example.com"}}, "CCC BBB AAA"},
		{Query{RecipientDomains: []string{}}, ""},
		{Query{RecipientDomains: []string{"com"}}, ""},
		{Query{RecipientDomains: []string{"example.com"}, Recipient: "bob@example.net"}, ""},
		{Query{RecipientDomains: []string{"example.com"}, Address: "bob@example.net"}, ""},
		{Query{RecipientDomains: []string{"example.com"}, Address: "ann@mail.example.org"}, "AAA"},
		{Query{RecipientDomains: []string{"example.com"}, ID: "CCC"}, "CCC"},
	} {
		p, err := r.Find(t.Context(), test.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range p.Decisions {
			got = append(got, d.ID)
			for _, recipient := range d.Recipients {
				if test.q.RecipientDomains != nil && !test.q.own(recipient) {
					t.Errorf("%+v shows %s", test.q, recipient)
				}
			}
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%+v finds %q, want %q", test.q, got, test.want)
		}
		if p.Reach == nil || !p.Reach.Equal(now) || p.Next != "" || p.Incomplete {
			t.Errorf("%+v: %v, %q, %v", test.q, p.Reach, p.Next, p.Incomplete)
		}
	}
}

// TestCut looks for anything of the other recipients in what a restricted reader sees.
func TestCut(t *testing.T) {
	w, r, _ := open(t, nil)
	write(t, w, &Decision{
		ID: "A", Time: time.Now(), Event: "refused", Action: "reject", Sender: "a@example.org", MoreRecipients: 7,
		Recipients: []string{"mine@example.com", "secret@example.net"},
		Reply:      "550 5.7.1 <secret@example.net>: no",
		Attrs: []Attr{{"refused_for", "<secret@example.net>"}, {"entry_for", "secret@example.net"}, {"next_hop", "250 secret@example.net"},
			{"source", "/secret"}, {"tls", "none"}},
	})
	p, err := r.Find(t.Context(), Query{RecipientDomains: []string{"example.com"}})
	if err != nil || len(p.Decisions) != 1 {
		t.Fatal(p, err)
	}
	d := p.Decisions[0]
	if text, _ := json.Marshal(d); strings.Contains(string(text), "secret") || d.MoreRecipients != 0 {
		t.Errorf("%s", text)
	}
	if !slices.Equal(d.Recipients, []string{"mine@example.com"}) || !slices.Equal(d.Attrs, []Attr{{"tls", "none"}}) {
		t.Errorf("%+v", d)
	}
	if p, err := r.Find(t.Context(), Query{}); err != nil || len(p.Decisions[0].Attrs) != 5 || p.Decisions[0].MoreRecipients != 7 {
		t.Errorf("unrestricted: %+v, %v", p, err)
	}
}

// TestPages reads pages while rows are added, and the oldest file is removed.
func TestPages(t *testing.T) {
	now := time.Date(2026, 11, 22, 23, 59, 0, 0, time.UTC)
	w, r, dir := open(t, at(now))
	for i := range 120 {
		w.Record(refusal(i, now.Add(time.Duration(i)*time.Second))) // half of them the day after
	}
	write(t, w)
	q := Query{Limit: 25}
	var got []string
	for page := range 4 {
		p, err := r.Find(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range p.Decisions {
			got = append(got, d.ID)
		}
		q.Before = p.Next
		write(t, w, refusal(1000+page, now.Add(time.Hour+time.Duration(page))))
		if page == 2 {
			first := newFolder(dir)
			files, err := first.files()
			if err != nil || len(files) != 2 {
				t.Fatal(files, err)
			}
			if err := first.remove(files[0].name()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(got) != 75 || got[0] != "ID000119" || got[74] != "ID000045" || len(slices.Compact(got)) != 75 || q.Before != "" {
		t.Errorf("%d rows, %q", len(got), got)
	}
}

func TestCursors(t *testing.T) {
	for _, p := range []place{{}, {1, 2, 3}, {1 << 62, 1 << 40, 1<<63 - 2}} {
		if got, err := p.cursor().place(); err != nil || got != p {
			t.Errorf("%v is %v, %v", p, got, err)
		}
	}
	_, r, _ := open(t, nil)
	good := string(place{1, 2, 3}.cursor())
	for _, bad := range []string{"x", "!", good + "A", good[:len(good)-1], "AgECAw", strings.Repeat("A", 1000), "AQ", good + "=", "\x00"} {
		if _, err := r.Find(t.Context(), Query{Before: Cursor(bad)}); !errors.Is(err, ErrCursor) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(string(place{1, 2, 3}.cursor()))
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Cursor(text).place()
		if err == nil && (string(p.cursor()) != text || p.offset < 0 || p.file < 0 || p.n < 0) {
			t.Errorf("%q is %v", text, p)
		}
	})
}

func FuzzPostings(f *testing.F) {
	f.Add(encodePostings(nil, []posting{{1, 0}, {1, 5}, {1, 500}, {7, 3}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var all []posting
		err := decodePostings(b, func(term) bool { return true }, func(term term, rows []uint32) {
			for _, r := range rows {
				all = append(all, posting{term, r})
			}
		})
		if err != nil {
			return
		}
		all = sortPostings(all)
		var again []posting
		err = decodePostings(encodePostings(nil, all), func(term) bool { return true }, func(term term, rows []uint32) {
			for _, r := range rows {
				again = append(again, posting{term, r})
			}
		})
		if err != nil || !slices.Equal(all, again) {
			t.Errorf("%v became %v, %v", all, again, err)
		}
	})
}

// TestIncomplete gives a search no time: it says where to continue, and misses nothing.
func TestIncomplete(t *testing.T) {
	smallBlocks(t)
	w, r, _ := open(t, nil)
	now := time.Now()
	for i := range 1000 {
		if w.Record(refusal(i, now.Add(time.Duration(i)))); i%10 == 0 {
			write(t, w)
		}
	}
	write(t, w)
	q, found, steps := Query{Recipient: "u7@example.net"}, 0, 0
	for {
		files, err := r.files()
		if err != nil {
			t.Fatal(err)
		}
		next, err := r.walk(t.Context(), files, &q, func(Decision, place) bool { found++; return true }, func() bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		if steps++; next == "" || steps > 5000 {
			break
		}
		q.Before = next
	}
	if found != 1 || steps < 10 || steps > 5000 {
		t.Errorf("%d rows in %d steps", found, steps)
	}
}

// TestLargeRows wants pages of rows that are as large as possible to be bounded, and to have all
// rows one after the other.
func TestLargeRows(t *testing.T) {
	const rows = 300
	w, r, _ := open(t, nil)
	now := time.Now()
	var all []*Decision
	for i := range rows {
		d := refusal(i, now.Add(-time.Duration(i)*time.Second))
		for n := range 1000 {
			d.Recipients = append(d.Recipients, fmt.Sprintf("%060d@example.net", n))
		}
		for range 20 {
			d.HeaderSenders = append(d.HeaderSenders, strings.Repeat("x", 1000)+"@a.example")
			d.Attrs = append(d.Attrs, Attr{Key: "proof", Value: strings.Repeat("x", 1000)})
		}
		if all = append(all, d); len(all) == 50 {
			write(t, w, all...)
			all = nil
		}
	}
	q, found, pages := Query{Limit: maxLimit}, 0, 0
	for {
		page, err := r.Find(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for i := range page.Decisions {
			size += page.Decisions[i].size()
		}
		if size > findBytes+100<<10 {
			t.Errorf("a page of %d bytes", size)
		}
		found, pages = found+len(page.Decisions), pages+1
		if q.Before = page.Next; q.Before == "" {
			break
		}
	}
	if found != rows || pages < 2 {
		t.Errorf("%d rows in %d pages", found, pages)
	}
}

// TestDamagedHead searches beside a file whose head names a format that SQLite does not know: one
// flipped bit must not hide the other files.
func TestDamagedHead(t *testing.T) {
	today := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	w, r, dir := open(t, at(today))
	write(t, w, refusal(1, today.Add(-24*time.Hour)), refusal(2, today))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "2026-11-22-000001.db")
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	content[47] ^= 0x40 // the format of the schema
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := r.Find(t.Context(), Query{}); err != nil || len(p.Decisions) != 1 || p.Decisions[0].ID != "ID000002" {
		t.Errorf("%+v, %v", p, err)
	}
}
