package decisions

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// whyAnswer is what "why --json" prints.
type whyAnswer struct {
	Messages []struct {
		ID, Outcome string
		Certain     bool
	}
	Now []struct {
		Result struct{ Address, Action string }
	}
	NotNow string `json:"now_unknown"`
}

// why runs the command and returns what it says: the answer, the ids and the outcomes.
func why(t *testing.T, g *harness.Gate, code int, asked string) (a whyAnswer, found []string) {
	t.Helper()
	out := g.Command(t, code, "why", "--json", asked)
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, m := range a.Messages {
		found = append(found, m.Outcome)
	}
	return a, found
}

// newNow returns what would happen now to an address.
func (a whyAnswer) newNow(address string) string {
	for _, n := range a.Now {
		if strings.EqualFold(n.Result.Address, address) {
			return n.Result.Action
		}
	}
	return ""
}

// TestWhy asks for a refused and an accepted message by id, sender and recipient, with each way to
// show addresses.
func TestWhy(t *testing.T) {
	t.Parallel()
	for _, addresses := range []string{"full", "hash", "domain"} {
		t.Run(addresses, func(t *testing.T) {
			t.Parallel()
			g := start(t, "warn", harness.Setup{Keys: map[string]string{"log": "addresses = \"" + addresses + "\""}, Tables: "[decisions]\nrecord = \"all\"\n"})
			id := refuse(t, g)
			accept(t, g)

			a, found := why(t, g, 0, "550 5.7.1 <"+spammer+"> refused: list blocked (unsolicited mail); id "+strings.ToLower(id))
			if len(found) != 1 || a.Messages[0].ID != id || found[0] != "refused" || (a.newNow(spammer) == "reject") != (addresses == "full") || (a.NotNow == "") != (addresses == "full") {
				t.Errorf("the id: %+v", a)
			}
			for address, want := range map[string][]string{strings.ToUpper(spammer): {"refused"}, friend: {"accepted"}, ann: {"refused", "accepted"}} {
				if a, found := why(t, g, 0, address); !slices.Equal(found, want) || a.Messages[0].Certain == (addresses == "domain") {
					t.Errorf("%s: %+v", address, a)
				}
			}
			if _, found := why(t, g, 1, "nobody@example.com"); len(found) != 0 {
				t.Errorf("nobody: %q", found)
			}

			// The sender that was accepted is listed since. Of a hash it is known who was asked for.
			g.Lists(t, 0, "add", friend, "--list", "blocked", "--reason", "since then")
			if a, _ := why(t, g, 0, friend); (a.newNow(friend) == "reject") != (addresses != "domain") {
				t.Errorf("now: %+v", a)
			}
		})
	}
}
