package exports

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestReadSpamAssassin has SpamAssassin and the gate read settings. The gate refuses more
// only beside a line that lets senders through: in SpamAssassin that outranks all others.
// SpamAssassin does not know address tags and is not asked about them.
func TestReadSpamAssassin(t *testing.T) {
	t.Parallel()
	harness.Program(t, "spamassassin", "spamassassin")
	d := dialect{format: "spamassassin", match: "subtree", line: func(r *rand.Rand, user, name string) string {
		pick := func(s ...string) string { return s[r.IntN(len(s))] }
		setting := pick("blocklist_from", "blocklist_from", "blacklist_from", "BLOCKLIST-FROM", "welcomelist_from", "whitelist_from")
		return fmt.Sprintf("%s %s%s", setting, pick("*@"+name, "*@"+name, "*."+name, "*@*."+name, user+"@"+name, user+"@*", strings.ToUpper(user)+"@"+name), pick("", "", " # a comment"))
	}}
	l, file := d.read(t, d.groups(5, decisions()))
	ask := harness.StartLines(t, "SpamAssassin", exec.Command("perl", "testdata/spamassassin.pl", file))
	l.compareWith(t, func(sender string) (refused, asked bool) {
		if strings.Contains(sender, "+") {
			return false, false
		}
		return ask(sender) == "refused", true
	}, func(g group, _ string) bool {
		lines := strings.ToLower(strings.Join(g.entries, "\n"))
		return strings.Contains(lines, "welcomelist") || strings.Contains(lines, "whitelist")
	})
}
