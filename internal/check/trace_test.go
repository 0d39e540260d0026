package check

import (
	"context"
	"slices"
	"testing"

	"spamgate/blocklist/verdict"
)

// TestTraceRoles: what is said of each list's match, and why it ends as it does.
func TestTraceRoles(t *testing.T) {
	const lists = `
[[list]]
name = "always"
path = "always.txt"
type = "allow"
override = true
[[list]]
name = "allowed"
path = "allowed.txt"
type = "allow"
[[list]]
name = "partners"
path = "partners.txt"
type = "allow"
[[list]]
name = "proven"
path = "proven.txt"
type = "allow"
proven_by = ["dkim"]
[[list]]
name = "watched"
path = "watched.txt"
action = "monitor"
[[list]]
name = "blocked"
path = "blocked.txt"
[[list]]
name = "again"
path = "blocked.txt"
[[list]]
name = "doubtful"
path = "doubtful.txt"
action = "tag"
`
	files := map[string]string{
		"always.txt":   "boss@bulk.example\n",
		"allowed.txt":  "boss@bulk.example\nfriend@bulk.example\nclean.example\n",
		"partners.txt": "@bulk.example\n",
		"proven.txt":   "@listed.example\nsigned.example\n",
		"watched.txt":  "new.example\n",
		"blocked.txt":  "bulk.example\nx@bulk.example\ny@bulk.example\nlisted.example\n",
		"doubtful.txt": "listed.example\n",
	}
	k := sessionOf(t, engineOf(t, lists, files), Question{})
	watching := sessionOf(t, engineOf(t, "policy.mode = \"monitor\"\n"+lists, files), Question{})
	for _, tt := range []struct {
		k       *session
		address string
		why     string
		roles   []string
	}{
		{k, "a@nobody.example", "no list has an entry that counts", nil},
		{k, "a@clean.example", "list allowed allows the sender, and no block list has an entry that stands", []string{
			"allowed: allows; shields from block entries that are no more specific",
		}},
		{k, "boss@bulk.example", "list always overrides every block list", []string{
			"always: overrides every block list", "allowed: allows, as list always does more strongly", "partners: allows, as list always does more strongly",
			"blocked: reject, but shielded by list always", "again: reject, but shielded by list always",
		}},
		{k, "friend@bulk.example", "list allowed shields the sender from entries that are no more specific", []string{
			"allowed: allows; shields from block entries that are no more specific", "partners: allows, as list allowed does more strongly",
			"blocked: reject, but shielded by list allowed", "again: reject, but shielded by list allowed",
		}},
		{k, "x@bulk.example", "reject is the strictest action of the block lists whose entries stand", []string{
			"partners: allows; shields from block entries that are no more specific",
			"blocked: reject, which decides", "again: reject, as list blocked before it",
		}},
		{k, "a@listed.example", "reject is the strictest action of the block lists whose entries stand; if the sender is proven, it is accept", []string{
			"proven: counts only if the sender is proven by dkim",
			"blocked: reject, which decides", "again: reject, as list blocked before it", "doubtful: tag, which is milder",
		}},
		{k, "a@signed.example", "list proven allows only a proven sender, and no block list has an entry that stands", []string{
			"proven: does not count: allows only a sender that is proven by dkim",
		}},
		{k, "srs0=a=b=bulk.example=x@fwd.example", "reject is the strictest action of the block lists whose entries stand; the entry is for the sender within, x@bulk.example", []string{
			"partners: cancels block entries for the sender within that are no more specific, and nothing else",
			"blocked: reject, which decides", "again: reject, as list blocked before it",
		}},
		{k, "srs0=a=b=bulk.example=friend@fwd.example", "list allowed allows the sender within, friend@bulk.example, and no block list has an entry that stands", []string{
			"allowed: cancels block entries for the sender within that are no more specific, and nothing else",
			"partners: allows, as list allowed does more strongly",
			"blocked: reject, but shielded by list allowed", "again: reject, but shielded by list allowed",
		}},
		{k, "srs0=a=b=bulk.example=x@clean.example", "list allowed shields the sender from entries that are no more specific", []string{
			"allowed: allows; shields from block entries that are no more specific",
			"partners: cancels block entries for the sender within that are no more specific, and nothing else",
			"blocked: reject, but shielded by list allowed", "again: reject, but shielded by list allowed",
		}},
		{k, "a@new.example", "what matches is only logged", []string{"watched: only logged"}},
		{watching, "x@bulk.example", `mode = "monitor" in [policy]: it would be reject, and is only logged`, []string{
			"partners: allows; shields from block entries that are no more specific",
			"blocked: reject, which decides", "again: reject, as list blocked before it",
		}},
	} {
		traces, err := tt.k.judge.Trace(context.Background(), nil, verdict.Query{Stage: verdict.Envelope, Address: tt.address})
		if err != nil {
			t.Fatal(err)
		}
		s := newTracedStage(traces)
		var roles []string
		for _, m := range s.Matches {
			roles = append(roles, m.List+": "+m.Role)
		}
		if s.Why != tt.why || !slices.Equal(roles, tt.roles) {
			t.Errorf("%s: %s, %q\nwant %s, %q", tt.address, s.Why, roles, tt.why, tt.roles)
		}
	}
}
