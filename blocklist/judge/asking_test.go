package judge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// askerLog is an Asker that has lists in memory and notes what it is asked.
type askerLog struct {
	mu      sync.Mutex
	listed  map[string]string // the reason by list, a space and the domain
	unknown map[string]bool   // lists without an answer
	log     []string
	skipped int
}

func (l *askerLog) Ask(list string, domains ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, "ask "+list+" "+strings.Join(domains, " "))
}

func (l *askerLog) Result(ctx context.Context, list, domain string) blocklist.Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = append(l.log, "wait "+list+" "+domain)
	if ctx.Err() != nil || l.unknown[list] {
		return blocklist.Answer{Unknown: "timeout", Defer: true}
	}
	if reason, ok := l.listed[list+" "+domain]; ok {
		return blocklist.Answer{Name: domain, Reason: reason}
	}
	return blocklist.Answer{}
}

func (l *askerLog) Skipped(string) { l.skipped++ }

// newAskedSet returns a Set with two lists in DNS, of which one counts in headers only, and
// files.
func newAskedSet(t testing.TB) *blocklist.Set {
	t.Helper()
	dir := t.TempDir()
	file := func(name, entries string, l store.List) store.List {
		l.Name, l.Paths = name, []string{filepath.Join(dir, name)}
		if err := os.WriteFile(l.Paths[0], []byte(entries), 0o600); err != nil {
			t.Fatal(err)
		}
		return l
	}
	set, _, err := store.Build(t.Context(), store.Config{
		Protect: []string{"own.example"},
		Lists: []store.List{
			file("allowed", "friend.example\n", store.List{Type: blocklist.Allow}),
			file("blocked", "bad.example\n", store.List{Action: verdict.Reject}),
			{Name: "dbl", Zone: "dbl.example.org", Action: verdict.Reject, PublicReason: true},
			{Name: "uri", Zone: "multi.example.net", Action: verdict.Tag, Stages: verdict.Header},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestAsking: what is asked for an envelope and a header, in which order, and what is spared.
func TestAsking(t *testing.T) {
	set := newAskedSet(t)
	asker := &askerLog{listed: map[string]string{"dbl new.example": "listed there", "uri third.example": "there"}}
	checker := Checker{Store: source{set}, Asked: func() Asker { return asker }}
	j := checker.Judge()
	m := &verdict.Message{ReversePath: "a@first.example", HeaderSenders: []verdict.HeaderSender{
		{Field: "From", Address: "a@first.example"}, {Field: "From", Address: "a@bad.example"},
		{Field: "Sender", Address: "b@friend.example"}, {Field: "Reply-To", Address: "c@third.example"},
		{Field: "Reply-To", Address: "c@own.example"}, {Field: "Reply-To", Address: "c@[192.0.2.1]"},
		{Field: "Reply-To", Address: "d@third.example"}, {Field: "Reply-To", Address: "no address"},
		{Field: "Reply-To", Address: "c@co.uk"},
	}}
	var got []string
	ask := func(q verdict.Query) {
		v, err := j.Judge(t.Context(), m, q)
		got = append(got, fmt.Sprintf("%s %s: %s %s", q.Stage, q.Address, v.Action, v.Match.List))
		if err != nil {
			got = append(got, "error")
		}
		got = append(got, asker.log...)
		asker.log = nil
	}
	ask(verdict.Query{Stage: verdict.Envelope, Address: "a@first.example"})
	ask(verdict.Query{Stage: verdict.Envelope, Address: "a@new.example"})
	ask(verdict.Query{Stage: verdict.Envelope, Address: ""})
	for _, s := range m.HeaderSenders[:4] {
		ask(verdict.Query{Stage: verdict.Header, Address: s.Address})
	}
	ask(verdict.Query{Stage: verdict.Header, Address: "no address"})
	want := []string{
		"envelope a@first.example: accept ", "ask dbl first.example", "wait dbl first.example",
		"envelope a@new.example: reject dbl", "ask dbl new.example", "wait dbl new.example",
		"envelope : accept ",
		"header a@first.example: accept ", "ask dbl first.example third.example", "ask uri first.example third.example",
		"ask dbl first.example", "ask uri first.example", "wait dbl first.example", "wait uri first.example",
		"header a@bad.example: reject blocked",
		"header b@friend.example: accept allowed",
		"header c@third.example: tag uri", "ask dbl third.example", "ask uri third.example", "wait dbl third.example", "wait uri third.example",
		"header no address: accept ", "error",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, r := range []verdict.Reading{verdict.ReadForm, verdict.ReadWord, verdict.ReadName} {
		v, err := j.Judge(t.Context(), m, verdict.Query{Stage: verdict.Header, Address: "a@new.example", Reading: r})
		if err != nil || v.Action != verdict.Accept {
			t.Errorf("reading %d: %+v, %v", r, v, err)
		}
	}
	if asker.log != nil || asker.skipped != 3*2 {
		t.Errorf("guesses: asked %q, %d skipped", asker.log, asker.skipped)
	}
	if j.Generation() != set.Generation() {
		t.Error(j.Generation())
	}
}

// TestAskingAhead: the questions about a header are bounded.
func TestAskingAhead(t *testing.T) {
	asker := &askerLog{}
	j := NewAsking(New(newAskedSet(t).Only(nil)), asker, nil)
	m := &verdict.Message{}
	for i := range 1000 {
		m.HeaderSenders = append(m.HeaderSenders, verdict.HeaderSender{Address: fmt.Sprintf("a@d%d.example", i)})
	}
	if _, err := j.Judge(t.Context(), m, verdict.Query{Stage: verdict.Header, Address: "a@d0.example"}); err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(asker.log[0])) - 2; n != maxAhead {
		t.Errorf("%d domains are asked about", n)
	}
}

// TestAskingUnknown: what has no answer is deferred if the Asker says so, with a reason for the
// client.
func TestAskingUnknown(t *testing.T) {
	asker := &askerLog{unknown: map[string]bool{"dbl": true}}
	j := NewAsking(New(newAskedSet(t).Only(nil)), asker, nil)
	v, err := j.Judge(t.Context(), nil, verdict.Query{Stage: verdict.Envelope, Address: "a@new.example"})
	if err != nil || v.Action != verdict.Defer || v.Match.List != "dbl" || v.Match.Note != "timeout" || !v.Match.PublicReason {
		t.Errorf("%+v, %v", v, err)
	}
	traces, err := j.Trace(t.Context(), nil, verdict.Query{Stage: verdict.Envelope, Address: "a@new.example"})
	if err != nil {
		t.Fatal(err)
	}
	if trace := traces[0]; trace.Verdict.Action != verdict.Defer || len(trace.Asked) != 1 || trace.Asked[0].Unknown != "timeout" {
		t.Errorf("%+v", trace)
	}
}

// TestAskingOnly: a Checker asks nothing for lists that do not count, or without an Asker.
func TestAskingOnly(t *testing.T) {
	set := newAskedSet(t)
	for _, c := range []Checker{
		{Store: source{set}},
		{Store: source{set}, Lists: []string{"blocked"}, Asked: func() Asker { t.Error("it asks"); return nil }},
	} {
		if _, plain := c.Judge().(Judge); !plain {
			t.Errorf("%v: the Judge asks", c.Lists)
		}
	}
}
