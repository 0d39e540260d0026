package fleetsearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/decisions"
)

// fleet is gates with real histories.
type fleet struct {
	t       testing.TB
	writers map[string]*decisions.Recorder
	readers map[string]*decisions.Reader
	change  func(name string, answer []byte) []byte // what a hostile gate makes of an answer
	dead    map[string]bool
}

func newFleet(t testing.TB, names ...string) *fleet {
	f := &fleet{t: t, writers: map[string]*decisions.Recorder{}, readers: map[string]*decisions.Reader{}, dead: map[string]bool{}}
	for _, name := range names {
		dir := filepath.Join(t.TempDir(), name)
		w, err := decisions.Open(decisions.Options{Dir: dir, Keep: 24 * time.Hour, MaxBytes: 1 << 30, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		r := decisions.NewReader(dir)
		t.Cleanup(func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			r.Close()
		})
		f.writers[name], f.readers[name] = w, r
	}
	return f
}

// record records a decision on a gate.
func (f *fleet) record(gate, id string, instant time.Time, to ...string) {
	f.writers[gate].Record(&decisions.Decision{ID: id, Time: instant, Event: "refused", Action: "reject", Sender: id + "@spam.example", Recipients: to, List: "blocked"})
}

func (f *fleet) sync() {
	for _, w := range f.writers {
		if err := w.Sync(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
	}
}

// search asks all gates as the first one of a fleet does.
func (f *fleet) search(q decisions.Query, asker, only string) (Page, error) {
	question := &Question{Query: q, Asker: asker, Only: only}
	answers, err := question.Collect(time.Now())
	if err != nil {
		return Page{}, err
	}
	if only == "" || only == asker {
		page, err := question.Here(f.t.Context(), asker, f.readers[asker].Find)
		answers.Own(asker, page, err)
	}
	text, err := question.Encode()
	if err != nil {
		f.t.Fatal(err)
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(f.readers)) {
		switch {
		case name == asker, only != "" && only != name:
			continue
		case f.dead[name]:
			missing = append(missing, name)
			continue
		}
		answer, err := Answer(name, f.readers[name].Find)(f.t.Context(), text)
		if f.change != nil {
			answer = f.change(name, answer)
		}
		if err != nil {
			answers.Failed(name, err)
			continue
		}
		answers.Add(name, answer)
	}
	return answers.Page(missing), nil
}

// TestPages pages through the histories of several gates, of which some are silent now and then,
// while new mail comes: each decision is shown once, the newest first.
func TestPages(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 0))
		f := newFleet(t, "mx1", "mx2", "mx3")
		begin := time.Now().Add(-time.Hour).UTC()
		want := map[string]bool{}
		names := []string{"mx1", "mx2", "mx3"}[:1+random.IntN(3)]
		for i := range 50 + random.IntN(150) {
			name, id := names[random.IntN(len(names))], fmt.Sprint("R", i)
			instant := begin.Add(time.Duration(i)*time.Second - time.Duration(random.IntN(1500))*time.Millisecond) // not quite in order
			f.record(name, id, instant)
			want[name+" "+id] = true
		}
		f.sync()
		q := decisions.Query{List: "blocked", Limit: 1 + random.IntN(20)}
		last := time.Now()
		for pages := 0; ; pages++ {
			page, err := f.search(q, "mx1", "")
			if err != nil || !page.Whole() || len(page.Decisions) > q.Limit || pages > 300 {
				t.Fatalf("seed %d: %+v, %v", seed, page, err)
			}
			for _, d := range page.Decisions {
				if key := d.Gate + " " + d.ID; !want[key] {
					t.Errorf("seed %d: %s is shown twice, or was not there", seed, key)
				} else {
					delete(want, key)
				}
				if d.Time.After(last.Add(2 * time.Second)) {
					t.Errorf("seed %d: %v after %v", seed, d.Time, last)
				}
				last = d.Time
			}
			if page.Next == "" {
				break
			}
			q.Before = page.Next
			for _, name := range names { // newer than all pages
				f.record(name, fmt.Sprint("N", pages), time.Now())
			}
			f.sync()
		}
		if len(want) > 0 {
			t.Errorf("seed %d: %d decisions are missing: %v", seed, len(want), want)
		}
	}
}

// TestSilent has a gate that does not answer the first question: it is named, and its newer
// decisions do not come on a later page.
func TestSilent(t *testing.T) {
	f := newFleet(t, "mx1", "mx2")
	begin := time.Now().Add(-time.Hour)
	for i := range 10 {
		f.record("mx1", fmt.Sprint("A", i), begin.Add(time.Duration(2*i)*time.Second))
		f.record("mx2", fmt.Sprint("B", i), begin.Add(time.Duration(2*i+1)*time.Second))
	}
	f.sync()
	f.dead["mx2"] = true
	q := decisions.Query{Limit: 5}
	page, err := f.search(q, "mx1", "")
	if got := ids(page); err != nil || got != "A9 A8 A7 A6 A5" || page.Whole() || !slices.Equal(page.Missing, []string{"mx2"}) {
		t.Fatalf("%s, %+v, %v", got, page, err)
	}
	if text := page.Answered(); text != "Asked the fleet: mx1 answered; NO ANSWER from mx2." {
		t.Error(text)
	}
	f.dead["mx2"] = false
	q.Before = page.Next
	page, err = f.search(q, "mx1", "")
	if got := ids(page); err != nil || got != "B4 A4 B3 A3 B2" || !page.Whole() {
		t.Errorf("%s, %v", got, err)
	}
	page, err = f.search(decisions.Query{Limit: 3}, "mx1", "mx2")
	if got := ids(page); err != nil || got != "B9 B8 B7" || !slices.Equal(page.Gates, []string{"mx2"}) {
		t.Errorf("%s, %+v, %v", got, page, err)
	}
	for _, before := range []decisions.Cursor{"x", "f.", "f.e30x", decisions.Cursor("f." + strings.Repeat("A", MaxCursor)), "AQEBAQ"} {
		if _, err := f.search(decisions.Query{Before: before}, "mx1", ""); !errors.Is(err, decisions.ErrCursor) {
			t.Errorf("%.20s: %v", before, err)
		}
	}
}

// ids returns the ids of a page.
func ids(p Page) string {
	var all []string
	for _, d := range p.Decisions {
		all = append(all, d.ID)
	}
	return strings.Join(all, " ")
}

// TestManyRows has more decisions than one answer takes: what is older than the last one of an
// answer waits for the next page.
func TestManyRows(t *testing.T) {
	f := newFleet(t, "mx1", "mx2")
	begin := time.Now().Add(-time.Hour)
	const n = MaxRows + 20
	for i := range n {
		f.record("mx2", fmt.Sprint("B", i), begin.Add(time.Duration(i)*time.Millisecond))
	}
	f.record("mx1", "A", begin.Add(-time.Second))
	f.sync()
	page, err := f.search(decisions.Query{Limit: 2 * MaxRows}, "mx1", "")
	if err != nil || len(page.Decisions) != MaxRows || page.Next == "" || page.Incomplete {
		t.Fatalf("%d decisions, %v", len(page.Decisions), err)
	}
	page, err = f.search(decisions.Query{Limit: 2 * MaxRows, Before: page.Next}, "mx1", "")
	if err != nil || len(page.Decisions) != 21 || page.Decisions[20].ID != "A" || page.Next != "" {
		t.Errorf("%d decisions, %q, %v", len(page.Decisions), page.Next, err)
	}
}

// TestLongAnswer has rows that together are too long for an answer.
func TestLongAnswer(t *testing.T) {
	f := newFleet(t, "mx1", "mx2")
	var to []string
	for i := range 300 {
		to = append(to, fmt.Sprintf("%s%d@example.net", strings.Repeat("a", 50), i))
	}
	for i := range 60 {
		f.record("mx2", fmt.Sprint("B", i), time.Now().Add(time.Duration(i-60)*time.Second), to...)
	}
	f.sync()
	f.change = func(_ string, answer []byte) []byte {
		if len(answer) > maxBytes+1<<10 {
			t.Errorf("an answer of %d bytes", len(answer))
		}
		return answer
	}
	seen := 0
	for q := (decisions.Query{Limit: 60}); ; {
		page, err := f.search(q, "mx1", "")
		if err != nil || len(page.Decisions) == 0 {
			t.Fatalf("%+v, %v", page, err)
		}
		seen += len(page.Decisions)
		if q.Before = page.Next; page.Next == "" {
			break
		}
	}
	if seen != 60 {
		t.Errorf("%d of 60 rows", seen)
	}
}

// TestBound wants an account that is bound to domains to see nothing more through another gate:
// neither by the question, nor if the other gate ignores the bound.
func TestBound(t *testing.T) {
	f := newFleet(t, "mx1", "mx2")
	f.record("mx2", "OURS", time.Now().Add(-3*time.Second), "ann@b.example", "secret@c.example")
	f.record("mx2", "OTHERS", time.Now().Add(-2*time.Second), "secret@c.example")
	f.sync()
	ignored := func(string, []byte) []byte {
		all := &Question{Asker: "mx1"}
		text, err := all.Encode()
		if err == nil {
			text, err = Answer("mx2", f.readers["mx2"].Find)(t.Context(), text)
		}
		if err != nil || !strings.Contains(string(text), "OTHERS") {
			t.Errorf("%s, %v", text, err)
		}
		return text
	}
	for _, f.change = range []func(string, []byte) []byte{nil, ignored} {
		for domains, want := range map[string]string{"b.example": "OURS", "x.example": "", "": ""} {
			q := decisions.Query{RecipientDomains: strings.Fields(domains)}
			page, err := f.search(q, "mx1", "")
			if got := ids(page); err != nil || got != want {
				t.Errorf("bound to %q: %q, %v", domains, got, err)
			}
			if text := fmt.Sprint(page); strings.Contains(text, "secret") {
				t.Errorf("bound to %q: %s", domains, text)
			}
		}
		if page, err := f.search(decisions.Query{}, "mx1", ""); err != nil || ids(page) != "OTHERS OURS" {
			t.Errorf("not bound: %s, %v", ids(page), err)
		}
	}
}

// TestQuestion wants a question that this version does not wholly understand to be refused.
func TestQuestion(t *testing.T) {
	for text, good := range map[string]bool{
		`{"asker":"mx1","query":"sender=a%40b.example","recipient_domains":null}`: true,
		`{"asker":"mx1","query":"","recipient_domains":[]}`:                       true,
		`{"asker":"mx1","query":"","recipient_domains":null,"roles":["x"]}`:       false,
		`{"asker":"mx1","query":"colour=red","recipient_domains":null}`:           false,
		`{"asker":"mx1","query":"%zz","recipient_domains":null}`:                  false,
		`{"asker":"mx1","query":"limit=0","recipient_domains":null}`:              false,
		`{"asker":"mx1","query":"before=f.e30x","recipient_domains":null}`:        false,
		`{"asker":"mx1"} {}`:   false,
		`sender=a%40b.example`: false,
		``:                     false,
	} {
		_, err := Answer("mx2", func(context.Context, decisions.Query) (decisions.Page, error) { return decisions.Page{}, nil })(t.Context(), []byte(text))
		if (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestHostileAnswers gives answers that no honest gate gives.
func TestHostileAnswers(t *testing.T) {
	row := func(id string) decisions.Decision {
		return decisions.Decision{ID: id, Time: time.Now(), Sender: "a@spam.example", List: "blocked", Action: "reject"}
	}
	place := decisions.Cursor("AQEBAQ")
	many := answer{}
	for range 100 {
		many.Decisions, many.Places = append(many.Decisions, row("X")), append(many.Places, place)
	}
	long := row("LONG")
	long.Reason, long.Time = strings.Repeat("x", 300<<10), time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -86340))
	other := row("OTHER")
	other.List = "allowed"
	past := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	for what, tt := range map[string]struct {
		answer any
		want   string // ids
		failed bool
	}{
		"more rows":         {many, "", true},
		"no places":         {answer{Page: decisions.Page{Decisions: []decisions.Decision{row("X")}}}, "", true},
		"a wrong place":     {answer{decisions.Page{Decisions: []decisions.Decision{row("X")}}, []decisions.Cursor{"x"}}, "", true},
		"an empty place":    {answer{decisions.Page{Decisions: []decisions.Decision{row("X")}}, []decisions.Cursor{""}}, "", true},
		"a wrong next":      {answer{Page: decisions.Page{Next: "f.e30"}}, "", true},
		"not JSON":          {[]int{1}, "", true},
		"not asked for":     {answer{decisions.Page{Decisions: []decisions.Decision{other, row("X")}}, []decisions.Cursor{place, place}}, "X", false},
		"long, in the year": {answer{decisions.Page{Decisions: []decisions.Decision{long}, Reach: &past, Fault: strings.Repeat("y", 1<<10)}, []decisions.Cursor{place}}, "LONG", false},
	} {
		q := &Question{Query: decisions.Query{List: "blocked", Limit: 50}, Asker: "mx1"}
		answers, err := q.Collect(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(tt.answer)
		if err != nil {
			t.Fatal(err)
		}
		answers.Add("mx2", text)
		page := answers.Page(nil)
		if ids(page) != tt.want || (page.Errors["mx2"] != "") != tt.failed {
			t.Errorf("%s: %q, %v", what, ids(page), page.Errors)
		}
		message, err := json.Marshal(page)
		if err != nil || len(message) > 20<<10 || page.Reach != nil {
			t.Errorf("%s: %d bytes, %v", what, len(message), err)
		}
	}
	answers, _ := (&Question{Asker: "mx1"}).Collect(time.Now())
	answers.Add("<b>mx2", []byte(`{"decisions":[]}`))
	if page := answers.Page(nil); len(page.Gates) != 0 || len(page.Errors) != 1 {
		t.Errorf("%+v", page)
	}
}

// FuzzAnswer merges an answer of another gate with own decisions. These stay, whatever it is.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"decisions":[{"id":"X","time":"2026-11-23T12:00:00Z","sender":"a@b.example","action":"reject"}],"places":["AQEBAQ"],"next":"AQEBAQ"}`))
	f.Add([]byte(`{"decisions":null,"next":"","stands_still":"x","reaches_back_to":"2026-11-23T12:00:00Z"}`))
	own := decisions.Page{Decisions: []decisions.Decision{{ID: "OWN", Time: time.Now(), Action: "reject"}}, Places: []decisions.Cursor{"AQEBAQ"}}
	f.Fuzz(func(t *testing.T, text []byte) {
		q := &Question{Query: decisions.Query{Action: "reject", Limit: 3}, Asker: "mx1"}
		answers, _ := q.Collect(time.Now())
		answers.Own("mx1", own, nil)
		answers.Add("mx2", text)
		page := answers.Page(nil)
		if len(page.Decisions) > 3 || len(page.Decisions) < 3 && !strings.Contains(ids(page), "OWN") {
			t.Errorf("%+v", page)
		}
		if _, err := json.Marshal(page); err != nil {
			t.Error(err)
		}
		if _, err := parseCursor(page.Next); err != nil {
			t.Errorf("next %q: %v", page.Next, err)
		}
	})
}

// FuzzQuestion answers a question of anybody.
func FuzzQuestion(f *testing.F) {
	f.Add([]byte(`{"asker":"mx1","query":"sender=a%40b.example&before=f.e30&limit=9","recipient_domains":["b.example"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = Answer("mx2", func(_ context.Context, q decisions.Query) (decisions.Page, error) {
			if q.Limit < 1 || q.Limit > MaxRows || q.Before.Check() != nil {
				t.Errorf("asks for %+v", q)
			}
			return decisions.Page{}, nil
		})(t.Context(), text)
	})
}
