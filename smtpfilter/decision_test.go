package smtpfilter_test

import (
	"log/slog"
	"strings"
	"testing"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
)

// TestDecisionAttributes has the attributes of a sender that a forwarder wrapped, of an entry
// for a recipient, and of proofs. No address is shown that the log hides.
func TestDecisionAttributes(t *testing.T) {
	const inner, outer = "boss@in.example", "SRS0=x=tt=in.example=boss@out.example"
	match := verdict.Match{List: "blocked", Entry: inner, For: "ann@example.net", Sender: inner, File: "b.txt", Line: 3, Action: verdict.Reject}
	v := verdict.Verdict{Action: verdict.Reject, Match: match,
		Matches: []verdict.Match{{List: "partners", Allow: true, Unproven: true}, {List: "partners", Allow: true, Unproven: true}, match},
		Proofs: []verdict.Proof{
			{By: verdict.SPF | verdict.DKIM, Why: "spf: fail for 192.0.2.1; dkim: no signature by out.example"},
			{By: verdict.DKIM, State: verdict.ProofPending},
			{By: verdict.DKIM, State: verdict.ProofPending},
		}}
	for _, tt := range []struct {
		finding verdict.Finding
		hide    bool
		want    []string
	}{
		{verdict.Finding{Identity: verdict.EnvelopeIdentity, Address: outer, Verdict: v, Policy: "sales"}, false, []string{
			" identity=envelope sender=" + inner + ` by_way_of="` + outer + `" list=blocked entry=` + inner + " entry_for=ann@example.net source=b.txt:3 recipient_policy=sales ",
			` proof="spf: fail for 192.0.2.1; dkim: no signature by out.example; dkim: pending" unproven=partners `,
			`reply="550 5.7.1 <` + inner + "> by way of <" + outer + "> refused: list blocked; id I"}},
		{verdict.Finding{Identity: "From", Address: outer, Verdict: v}, true, []string{
			" identity=From sender=HIDDEN by_way_of=HIDDEN list=blocked entry=HIDDEN entry_for=HIDDEN ",
			`reply="550 5.7.1 <HIDDEN> by way of <HIDDEN> refused: list blocked; id I"`}},
	} {
		var b strings.Builder
		log := smtpfilter.DecisionLog{Log: slog.New(slog.NewTextHandler(&b, nil)), ShowAddress: func(a string) string {
			if tt.hide {
				return "HIDDEN"
			}
			return a
		}}
		var policy smtpfilter.Policy
		reply := log.Refusal(&policy, &tt.finding, "I", policy.Refusal(&tt.finding, "I"))
		log.Write(&verdict.Decision{Event: "refused", ID: "I", Reply: reply.String()}, &verdict.Message{ReversePath: outer}, &tt.finding, 0, nil)
		for _, want := range tt.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("no %s in\n%s", want, b.String())
			}
		}
		if tt.hide && strings.Contains(b.String(), "boss") {
			t.Errorf("an address is shown:\n%s", b.String())
		}
	}
}
