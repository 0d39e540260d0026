package judge

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// newSet returns a Set of two block lists, one of which only monitors, and an
// allow list.
func newSet(t testing.TB) *blocklist.Set {
	t.Helper()
	dir := t.TempDir()
	list := func(name, entries string, l store.List) store.List {
		l.Name, l.Paths = name, []string{filepath.Join(dir, name)}
		if err := os.WriteFile(l.Paths[0], []byte(entries), 0o600); err != nil {
			t.Fatal(err)
		}
		return l
	}
	set, _, err := store.Build(t.Context(), store.Config{Lists: []store.List{
		list("allowed", "friend@listed.example\n", store.List{Type: blocklist.Allow}),
		list("blocked", "listed.example\nspammer@\n", store.List{Action: verdict.Reject}),
		list("tried", "@listed.example\n", store.List{Action: verdict.Monitor}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// source is what a Checker asks.
type source struct{ set *blocklist.Set }

func (s source) Set() *blocklist.Set { return s.set }

func TestJudge(t *testing.T) {
	set := newSet(t)
	all := Checker{Store: source{set}}.Judge()
	tried := Checker{Store: source{set}, Lists: []string{"tried"}}.Judge()
	if all.Generation() != set.Generation() {
		t.Error(all.Generation())
	}
	for _, tt := range []struct {
		judge     verdict.Judge
		reading   verdict.Reading
		address   string
		want      verdict.Action
		list      string
		monitored int
	}{
		{all, verdict.ReadAddress, "a@clean.example", verdict.Accept, "", 0},
		{all, verdict.ReadAddress, "", verdict.Accept, "", 0},
		{all, verdict.ReadAddress, "a@listed.example", verdict.Reject, "blocked", 1},
		{tried, verdict.ReadAddress, "a@listed.example", verdict.Accept, "", 1},

		// A shielded match of a list that monitors would have done nothing.
		{all, verdict.ReadAddress, "friend@listed.example", verdict.Accept, "allowed", 0},

		// A guess never allows, and a word only names a local part.
		{all, verdict.ReadForm, "friend@listed.example", verdict.Reject, "blocked", 1},
		{all, verdict.ReadWord, "friend@listed.example", verdict.Accept, "", 0},
		{all, verdict.ReadForm, "spammer@", verdict.Reject, "blocked", 0},
		{all, verdict.ReadWord, "spammer@", verdict.Reject, "blocked", 0},
		{all, verdict.ReadName, "spammer@", verdict.Accept, "", 0},
		{all, verdict.ReadName, "friend@listed.example", verdict.Accept, "", 0},

		// The local part of a domain says nothing.
		{all, verdict.ReadDomain, "spammer@clean.example", verdict.Accept, "", 0},
		{all, verdict.ReadDomain, "friend@listed.example", verdict.Reject, "blocked", 1},
	} {
		v, err := tt.judge.Judge(t.Context(), nil, verdict.Query{Stage: verdict.Header, Address: tt.address, Reading: tt.reading})
		if err != nil || v.Action != tt.want || v.Match.List != tt.list || len(v.Monitored) != tt.monitored {
			t.Errorf("%q, reading %d: %+v, %v", tt.address, tt.reading, v, err)
		}
	}
}

// TestJudgeErrors: a stage that does not exist is our failure, and so never an
// answer; what is not an address is the sender's.
func TestJudgeErrors(t *testing.T) {
	j := New(newSet(t).Only(nil))
	for _, stage := range []verdict.Stage{0, 4} {
		_, err := j.Judge(t.Context(), nil, verdict.Query{Stage: stage, Address: "a@listed.example"})
		if !errors.Is(err, verdict.ErrNoAnswer) {
			t.Errorf("stage %d: %v", stage, err)
		}
		if _, err := j.Trace(t.Context(), nil, verdict.Query{Stage: stage, Address: "a@listed.example"}); err == nil {
			t.Errorf("stage %d can be traced", stage)
		}
	}
	for _, address := range []string{"no address", "spammer@"} {
		_, err := j.Judge(t.Context(), nil, verdict.Query{Stage: verdict.Header, Address: address})
		if err == nil || errors.Is(err, verdict.ErrNoAnswer) {
			t.Errorf("%q: %v", address, err)
		}
		if _, err := j.Trace(t.Context(), nil, verdict.Query{Stage: verdict.Header, Address: address}); err == nil {
			t.Errorf("%q can be traced", address)
		}
	}
}

// TestTrace: the verdict of a trace is the Judge's.
func TestTrace(t *testing.T) {
	j := New(newSet(t).Only(nil))
	traces, err := j.Trace(t.Context(), nil, verdict.Query{Stage: verdict.Envelope, Address: "a@listed.example"})
	if err != nil {
		t.Fatal(err)
	}
	if trace := traces[0]; trace.Verdict.Action != verdict.Reject || len(trace.Keys) == 0 {
		t.Errorf("%+v", trace)
	}
}

// TestJudgeAllocations: nearly all mail has senders whom no list knows.
func TestJudgeAllocations(t *testing.T) {
	checker := Checker{Store: source{newSet(t)}, Lists: []string{"allowed", "blocked"}}
	m := &verdict.Message{Door: "proxy"}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		v, err := checker.Judge().Judge(ctx, m, verdict.Query{Stage: verdict.Envelope, Address: "someone@clean.example"})
		if err != nil || v.Matches != nil {
			t.Fatal(v, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestWrappedTwice: a sender in two layers of wrapping of different kinds is judged, too.
func TestWrappedTwice(t *testing.T) {
	j := Checker{Store: source{newSet(t)}, Unwrap: sender.SRS | sender.BATV}.Judge()
	for _, address := range []string{
		"srs0=aa=bb=in.example=prvs=1234abcdef=spammer@out.example", // a tagged address, forwarded
		"prvs=1234abcdef=srs0=aa=bb=in.example=spammer@out.example", // a forwarder that tags
		"box+srs=aa=bb=in.example=btv1==0a1b2c3d==spammer@out.example",
		"btv1==0a1b2c3d==prvs=1234abcdef=spammer@in.example",
		"srs1=cc=first.example==aa=bb=in.example=spammer@out.example",
	} {
		v, err := j.Judge(t.Context(), nil, verdict.Query{Stage: verdict.Envelope, Address: address})
		if err != nil || v.Action != verdict.Reject || v.Match.List != "blocked" {
			t.Errorf("%s: %+v, %v", address, v, err)
		}
	}
}
