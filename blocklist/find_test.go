package blocklist

import (
	"testing"

	"spamgate/blocklist/verdict"
)

// TestDecideProofs: which proofs are asked for, and what they change.
func TestDecideProofs(t *testing.T) {
	block := func(name string, a verdict.Action, entries ...string) plainList {
		return plainList{List{Name: name, Action: a}, entries}
	}
	allow := func(name string, override bool, entries ...string) plainList {
		return plainList{List{Name: name, Type: Allow, Override: override, ProvenBy: verdict.DKIM}, entries}
	}
	const sender = "u@p.example"
	for _, tt := range []struct {
		name    string
		lists   []plainList
		stage   verdict.Stage
		state   verdict.ProofState
		want    verdict.Action
		asked   bool
		pending bool
		clears  bool
	}{
		{"no block entry", []plainList{allow("a", false, "p.example")}, verdict.Envelope, verdict.Proven, verdict.Accept, false, false, false},
		{"proven", []plainList{block("b", verdict.Reject, "p.example"), allow("a", false, "p.example")}, verdict.Envelope, verdict.Proven, verdict.Accept, true, false, false},
		{"not proven", []plainList{block("b", verdict.Reject, "p.example"), allow("a", false, "p.example")}, verdict.Envelope, verdict.NotProven, verdict.Reject, true, false, false},
		{"pending", []plainList{block("b", verdict.Reject, "p.example"), allow("a", false, "p.example")}, verdict.Envelope, verdict.ProofPending, verdict.Reject, true, true, false},
		{"no answer", []plainList{block("b", verdict.Reject, "p.example"), allow("a", false, "p.example")}, verdict.Envelope, verdict.ProofUnknown, verdict.Defer, true, false, false},
		{"no answer about a discarded one", []plainList{block("b", verdict.Discard, "p.example"), allow("a", false, "p.example")}, verdict.Envelope, verdict.ProofUnknown, verdict.Defer, true, false, false},
		{"no answer about a tagged one", []plainList{block("b", verdict.Tag, "p.example"), allow("a", false, "p.example")}, verdict.Envelope, verdict.ProofUnknown, verdict.Tag, true, false, false},
		{"another list refuses in any case", []plainList{block("b", verdict.Reject, "p.example"), block("c", verdict.Reject, "@p.example"), allow("a", false, "p.example")}, verdict.Envelope, verdict.Proven, verdict.Reject, false, false, false},
		{"a milder list is left", []plainList{block("b", verdict.Reject, "p.example"), block("c", verdict.Tag, "@p.example"), allow("a", false, "p.example")}, verdict.Envelope, verdict.Proven, verdict.Tag, true, false, false},
		{"clears the message", []plainList{allow("a", true, "p.example")}, verdict.Envelope, verdict.Proven, verdict.Accept, true, false, true},
		{"clears nothing in a header", []plainList{allow("a", true, "p.example")}, verdict.Header, verdict.Proven, verdict.Accept, false, false, false},
		{"two overrides, of which the second asks for no proof", []plainList{block("b", verdict.Reject, "p.example"), allow("a", true, "p.example"), {List{Name: "plain", Type: Allow, Override: true}, []string{"p.example"}}}, verdict.Envelope, verdict.NotProven, verdict.Accept, false, false, true},
		{"only monitors", []plainList{block("b", verdict.Monitor, "p.example"), allow("a", false, "p.example")}, verdict.Envelope, verdict.Proven, verdict.Accept, false, false, false},
	} {
		for _, monitor := range []bool{false, true} {
			set := setOf(t, tt.lists, 1<<16)
			set.monitor = monitor
			found, err := set.all.Find(tt.stage, parse(t, sender), FindOptions{})
			must(t, err)
			asked := false
			v := Decide([]Found{found}, func(i int, by verdict.Proofs) verdict.Proof {
				asked = true
				if i != 0 || by != verdict.DKIM {
					t.Errorf("%s: asked about %d, %s", tt.name, i, by)
				}
				return verdict.Proof{By: by, State: tt.state}
			})
			outcome := v
			if monitor && v.Would != nil {
				outcome = *v.Would
			}
			if outcome.Action != tt.want || asked != tt.asked || v.Pending != tt.pending || v.ClearsMessage != tt.clears {
				t.Errorf("%s, monitor %v: asked %v, %+v", tt.name, monitor, asked, v)
			}
			if monitor && v.Action != verdict.Accept {
				t.Errorf("%s: %s although the lists only monitor", tt.name, v.Action)
			}
			if v.Pending && len(v.Proofs) == 0 {
				t.Errorf("%s, monitor %v: nobody knows which proof is pending", tt.name, monitor)
			}
			if v.Pending && v.Proved.Action != verdict.Accept {
				t.Errorf("%s: proved %+v", tt.name, v.Proved)
			}
		}
	}
}

// TestDecideSecondProof: a sender whose first claim is not proven may prove the second one.
func TestDecideSecondProof(t *testing.T) {
	set := setOf(t, []plainList{
		{List{Name: "b", Action: verdict.Reject}, []string{"p.example"}},
		{List{Name: "signed", Type: Allow, ProvenBy: verdict.DKIM}, []string{"p.example"}},
		{List{Name: "sent", Type: Allow, ProvenBy: verdict.SPF}, []string{"p.example"}},
	}, 1<<16)
	found, err := set.all.Find(verdict.Envelope, parse(t, "u@p.example"), FindOptions{})
	must(t, err)
	for _, by := range []verdict.Proofs{verdict.DKIM, verdict.SPF} {
		v := Decide([]Found{found}, func(_ int, asked verdict.Proofs) verdict.Proof {
			if asked == by {
				return verdict.Proof{By: asked, State: verdict.Proven}
			}
			return verdict.Proof{By: asked, State: verdict.NotProven}
		})
		if v.Action != verdict.Accept {
			t.Errorf("proven by %s: %+v", by, v)
		}
	}
}

// TestDecideWrapped: what the address itself and the sender that a forwarder wrapped into it
// do to each other.
func TestDecideWrapped(t *testing.T) {
	block := func(a verdict.Action, entries ...string) plainList {
		return plainList{List{Name: a.String(), Action: a}, entries}
	}
	allow := func(entries ...string) plainList { return plainList{List{Name: "allow", Type: Allow}, entries} }
	override := func(entries ...string) plainList {
		return plainList{List{Name: "override", Type: Allow, Override: true}, entries}
	}
	for _, tt := range []struct {
		name   string
		lists  []plainList
		want   verdict.Action
		sender string // of the match
		clears bool
	}{
		{"neither", []plainList{block(verdict.Reject, "other.example")}, verdict.Accept, "", false},
		{"the inner one is blocked", []plainList{block(verdict.Reject, "in.example")}, verdict.Reject, "u@in.example", false},
		{"the outer one is blocked", []plainList{block(verdict.Reject, "out.example")}, verdict.Reject, "", false},
		{"both: the stricter one", []plainList{block(verdict.Tag, "out.example"), block(verdict.Defer, "in.example")}, verdict.Defer, "u@in.example", false},
		{"both alike: the outer one", []plainList{block(verdict.Reject, "in.example", "out.example")}, verdict.Reject, "", false},
		{"the outer one is allowed", []plainList{block(verdict.Reject, "u@in.example"), allow("out.example")}, verdict.Accept, "", false},
		{"the inner one is allowed, and no less blocked", []plainList{block(verdict.Reject, "u@in.example"), allow("in.example")}, verdict.Reject, "u@in.example", false},
		{"the inner one is allowed as directly", []plainList{block(verdict.Reject, "in.example"), allow("u@in.example")}, verdict.Accept, "", false},
		{"the inner one does not let the outer one in", []plainList{block(verdict.Reject, "out.example"), override("in.example")}, verdict.Reject, "", false},
		{"the inner one clears no message", []plainList{override("in.example")}, verdict.Accept, "", false},
		{"the outer one clears it", []plainList{block(verdict.Reject, "in.example"), override("out.example")}, verdict.Accept, "", true},
	} {
		for _, monitor := range []bool{false, true} {
			set := setOf(t, tt.lists, 1<<16)
			set.monitor = monitor
			outer, err := set.all.Find(verdict.Envelope, parse(t, "srs0=aa=bb=in.example=u@out.example"), FindOptions{})
			must(t, err)
			inner, err := set.all.Find(verdict.Envelope, parse(t, "u@in.example"), FindOptions{})
			must(t, err)
			inner.Named(parse(t, "u@in.example"))
			v := Decide([]Found{outer, inner}, nil)
			if monitor {
				if v.Action != verdict.Accept || v.Would == nil && tt.want != verdict.Accept {
					t.Errorf("%s: %+v although the lists only monitor", tt.name, v)
				}
				continue
			}
			if v.Action != tt.want || v.Match.Sender != tt.sender || v.ClearsMessage != tt.clears {
				t.Errorf("%s: %+v", tt.name, v)
			}
		}
	}
}
