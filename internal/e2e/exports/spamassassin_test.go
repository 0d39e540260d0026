package exports

import (
	"bufio"
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
	ask := startJudge(t, exec.Command("perl", "testdata/spamassassin.pl", file))
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

// startJudge starts a program that reads a sender a line and prints a verdict for each.
func startJudge(t *testing.T, cmd *exec.Cmd) (ask func(sender string) string) {
	t.Helper()
	cmd.Stderr = harness.NewOutput(t, "judge")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	verdicts := bufio.NewScanner(out)
	return func(sender string) string {
		fmt.Fprintln(in, sender)
		if !verdicts.Scan() {
			t.Fatalf("no verdict about %s: %v", sender, verdicts.Err())
		}
		return verdicts.Text()
	}
}
