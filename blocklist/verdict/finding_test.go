package verdict

import "testing"

func TestDecide(t *testing.T) {
	finding := func(a Action, list string) Finding {
		return Finding{Verdict: Verdict{Action: a, Match: Match{List: list}}}
	}
	notAsked := Finding{Verdict: Verdict{Action: Defer}, Err: ErrNoAnswer}
	for _, tt := range []struct {
		findings []Finding
		exempt   bool
		action   Action
		list     string
	}{
		{nil, false, Accept, ""},
		{[]Finding{{}, finding(Accept, "allowed")}, false, Accept, "allowed"},
		{[]Finding{finding(Tag, "a"), finding(Reject, "b"), finding(Reject, "c"), finding(Defer, "d")}, false, Reject, "b"},
		{[]Finding{finding(Discard, "a"), finding(Defer, "b")}, false, Defer, "b"},
		{[]Finding{notAsked, finding(Tag, "b")}, false, Defer, ""},
		{[]Finding{notAsked, finding(Defer, "b")}, false, Defer, ""},
		{[]Finding{finding(Defer, "a"), notAsked}, false, Defer, ""},
		{[]Finding{finding(Reject, "a"), notAsked}, false, Reject, "a"},
		{[]Finding{notAsked}, true, Accept, ""},
		{[]Finding{finding(Reject, "a"), finding(Tag, "b")}, true, Tag, "b"},
		{[]Finding{finding(Reject, "a")}, true, Accept, ""},
	} {
		got := Decide(tt.findings, tt.exempt)
		if got.Verdict.Action != tt.action || got.Verdict.Match.List != tt.list {
			t.Errorf("%v, exempt %v: %v by %q, want %v by %q", tt.findings, tt.exempt,
				got.Verdict.Action, got.Verdict.Match.List, tt.action, tt.list)
		}
	}
}
