package blocklist

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// withAsked makes some of the block lists, which then hold domains alone, lists that are asked.
// It returns the Set in which they are, and the one in which they are read.
func withAsked(t *testing.T, r *rand.Rand, lists []plainList) (asked, read *Set, answer func([]Question)) {
	t.Helper()
	remote := slices.Clone(lists)
	held := map[string]plainList{}
	for i := range lists {
		l := &lists[i]
		if l.Type != Block || r.IntN(2) == 0 {
			continue
		}
		exact := r.IntN(3) == 0
		l.Entries = slices.DeleteFunc(slices.Clone(l.Entries), func(e string) bool { return strings.ContainsAny(e, "!@*<") })
		if exact {
			for j := range l.Entries {
				l.Entries[j] = "@" + l.Entries[j]
			}
		}
		remote[i].Asked, remote[i].Entries = &Asked{Exact: exact, Source: "dns:" + l.Name}, nil
		held[l.Name] = *l
	}
	answer = func(questions []Question) {
		for i := range questions {
			q := &questions[i]
			entry, _ := (&plainList{Entries: held[q.List].Entries}).own("nobody@" + q.Domain)
			q.Name = strings.TrimPrefix(entry, "@")
		}
	}
	return setOf(t, remote, 256), setOf(t, lists, 256), answer
}

// TestAskedAgainstRead: a list that is asked decides as it would if it were read. It is left
// out of the verdict only where it would have changed nothing.
func TestAskedAgainstRead(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	var decided, spared, monitored, outcome int
	for range unlessShort(300, 60) {
		asked, read, answer := withAsked(t, r, randomLists(r))
		asked.monitor = r.IntN(4) == 0
		read.monitor = asked.monitor
		for range 40 {
			_, address := randomText(r)
			stage := []verdict.Stage{verdict.Envelope, verdict.Header}[r.IntN(2)]
			a := parse(t, address)
			calls := 0
			got, err := lookupAsking(asked.Only(nil), stage, a, func(q []Question) { calls++; answer(q) })
			must(t, err)
			trace, _, err := asked.Only(nil).Trace(stage, a, FindOptions{Answer: answer})
			must(t, err)
			if !reflect.DeepEqual(trace.Verdict, got) || calls > 1 {
				t.Fatalf("%s %s: %d calls, got\n%+v\ntraced %+v", stage, address, calls, got, trace.Verdict)
			}
			want := lookup(t, read, stage, a)
			if got.Would != nil {
				got = *got.Would
				outcome++
			}
			if want.Would != nil {
				want = *want.Would
			}
			if got.Action != want.Action || got.ClearsMessage != want.ClearsMessage {
				t.Fatalf("%s %s: got %+v\nwant %+v", stage, address, got, want)
			}
			if strings.HasPrefix(got.Match.File, "dns:") {
				decided++
				if got.Match.List != want.Match.List || got.Match.Rank != want.Match.Rank || got.Match.Entry != strings.TrimPrefix(want.Match.Entry, "@") {
					t.Fatalf("%s %s: got %+v\nwant %+v", stage, address, got.Match, want.Match)
				}
			}
			for _, m := range want.Matches {
				if !slices.ContainsFunc(got.Matches, func(o verdict.Match) bool { return o.List == m.List }) {
					spared++
					if !m.Shielded && got.Action != verdict.Reject && (m.Monitor || m.Action > got.Action) {
						t.Fatalf("%s %s: %+v is missing in\n%+v", stage, address, m, got)
					}
				}
			}
			monitored += len(got.Monitored)
		}
	}
	if decided == 0 || spared == 0 || monitored == 0 || outcome == 0 {
		t.Errorf("%d decided, %d spared, %d monitored, %d would: the test tests less than it should", decided, spared, monitored, outcome)
	}
}

// TestQuestions: which domains are asked for, and what spares the question.
func TestQuestions(t *testing.T) {
	dns := func(name string, a verdict.Action) plainList {
		return plainList{List: List{Name: name, Action: a, Asked: &Asked{Source: "dns:" + name, Omits: func(d string) bool { return d == "own.example" }}}}
	}
	header := dns("header", verdict.Reject)
	header.Stages = verdict.Header
	set := setOf(t, []plainList{
		{List{Name: "allowed", Type: Allow}, []string{"friend@listed.example", "good.example"}},
		{List{Name: "always", Type: Allow, Override: true}, []string{"boss@"}},
		{List{Name: "proven", Type: Allow, ProvenBy: verdict.DKIM}, []string{"partner.example"}},
		{List{Name: "blocked", Action: verdict.Reject}, []string{"bad.example"}},
		{List{Name: "slowed", Action: verdict.Defer}, []string{"slow.example"}},
		dns("rejects", verdict.Reject), dns("defers", verdict.Defer), dns("watches", verdict.Monitor), header,
	}, 1<<20)
	for address, want := range map[string]string{
		"a@new.example":         "rejects defers watches",
		"<>":                    "",
		"a@[192.0.2.1]":         "",
		"a@bad.example":         "",
		"a@slow.example":        "rejects watches",
		"boss@new.example":      "",
		"friend@listed.example": "",
		"a@good.example":        "",
		"a@sub.good.example":    "rejects defers watches", // sub.good.example may be listed, and is more specific
		"a@own.example":         "",
		"a@partner.example":     "rejects defers watches", // the address may be forged
	} {
		questions, err := set.all.Questions(verdict.Envelope, parse(t, address))
		must(t, err)
		var names []string
		for _, q := range questions {
			names = append(names, q.List)
			if q.Domain != address[strings.IndexByte(address, '@')+1:] || q.Source != "dns:"+q.List {
				t.Errorf("%s: %+v", address, q)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: asks %q, want %q", address, got, want)
		}
	}
	if set.Lookups() != 0 {
		t.Errorf("%d lookups are counted", set.Lookups())
	}
	if got := set.Only([]string{"defers", "header"}).Asked(verdict.Header); !slices.Equal(got, []string{"defers", "header"}) {
		t.Errorf("asks %q", got)
	}
	if set.Only([]string{"blocked"}).Asks(verdict.AllStages) || set.all.Asks(9) {
		t.Error("lists are asked that do not count")
	}
}

// TestAnswers: what becomes of an answer that is missing, that names what was not asked, or
// that is about a domain which does not count.
func TestAnswers(t *testing.T) {
	list := func(name string, a verdict.Action) plainList {
		return plainList{List: List{Name: name, Action: a, Asked: &Asked{Source: "dns:" + name, Omits: func(d string) bool { return d == "own.example" }}}}
	}
	for _, tt := range []struct {
		action verdict.Action
		answer Answer
		want   verdict.Action
		entry  string
		reason string
	}{
		{verdict.Reject, Answer{Name: "listed.example", Reason: "spam", Note: "127.0.0.2"}, verdict.Reject, "listed.example", "spam"},
		{verdict.Reject, Answer{Name: "sub.listed.example"}, verdict.Reject, "sub.listed.example", ""},
		{verdict.Tag, Answer{Name: "listed.example"}, verdict.Tag, "listed.example", ""},
		{verdict.Reject, Answer{}, verdict.Accept, "", ""},
		{verdict.Reject, Answer{Name: "other.example"}, verdict.Accept, "", ""},
		{verdict.Reject, Answer{Name: "own.example"}, verdict.Accept, "", ""},
		{verdict.Reject, Answer{Unknown: "timeout"}, verdict.Accept, "", ""},
		{verdict.Reject, Answer{Unknown: "timeout", Defer: true}, verdict.Defer, "sub.listed.example", "the list does not answer now, try again later"},
		{verdict.Defer, Answer{Unknown: "timeout", Defer: true}, verdict.Defer, "sub.listed.example", "the list does not answer now, try again later"},
		{verdict.Tag, Answer{Unknown: "timeout", Defer: true}, verdict.Accept, "", ""},
		{verdict.Monitor, Answer{Unknown: "timeout", Defer: true}, verdict.Accept, "", ""},
	} {
		set := setOf(t, []plainList{list("asked", tt.action)}, 1<<20)
		v, err := lookupAsking(&set.all, verdict.Envelope, parse(t, "a@sub.listed.example"), func(q []Question) {
			for i := range q {
				q[i].Answer = tt.answer
			}
		})
		must(t, err)
		if v.Action != tt.want || v.Match.Entry != tt.entry || v.Match.Reason != tt.reason {
			t.Errorf("%s, %+v: %+v", tt.action, tt.answer, v)
		}
	}
}

// TestAnswerThatDoesNotCount: the answer about a name below a mail provider names the provider.
func TestAnswerThatDoesNotCount(t *testing.T) {
	asked := &Asked{Source: "dns:asked", Omits: func(d string) bool { return d == "provider.example" }}
	set := setOf(t, []plainList{{List: List{Name: "asked", Action: verdict.Reject, Asked: asked}}}, 1<<20)
	v, err := lookupAsking(&set.all, verdict.Envelope, parse(t, "a@user.provider.example"), func(q []Question) { q[0].Name = "provider.example" })
	if must(t, err); v.Action != verdict.Accept {
		t.Errorf("%+v", v)
	}
}

// lookupAsking decides about a sender with the answers of lists in DNS.
func lookupAsking(v *View, stage verdict.Stage, a sender.Address, answer func([]Question)) (verdict.Verdict, error) {
	found, err := v.Find(stage, a, FindOptions{Answer: answer})
	return Decide([]Found{found}, nil), err
}

// TestAskedAllocations: a Set without lists that are asked answers as fast as ever.
func TestAskedAllocations(t *testing.T) {
	set := setOf(t, []plainList{{List{Name: "l", Action: verdict.Reject}, []string{"bad.example"}}}, 1<<20)
	a := parse(t, "someone@clean.example")
	if n := testing.AllocsPerRun(100, func() {
		if v, err := lookupAsking(&set.all, verdict.Envelope, a, nil); err != nil || v.Matches != nil {
			t.Fatal(v, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
