package exports

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/judge"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	gateconfig "spamgate/internal/config"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/setup"
	"spamgate/smtpfilter"
)

// classConfig has a list by recipient, another list, and recipients with a policy.
const classConfig = `[[list]]
name = "personal"
path = "personal.txt"
per_recipient = true
allow_public_suffix = true
[[list]]
name = "blocked"
path = "blocked.txt"
allow_public_suffix = true
[[recipient_policy]]
match = ["@p1.r0.test", "!kate@p1.r0.test"]
exempt = true
[[recipient_policy]]
match = ["@p1.r1.test"]
lists = ["blocked"]
[[recipient_policy]]
match = ["@p1.r2.test"]
max_action = "tag"
[[recipient_policy]]
match = ["r3.test"]
max_action = "defer"
[state]
dir = "state"
`

// A classGroup is a group of senders, some recipients, and lines about the two.
type classGroup struct {
	group
	recipients []string
}

// classGroups returns groups whose lines do not touch each other, but for those about local
// parts at any domain.
func classGroups(seed uint64, n int) (groups []classGroup) {
	random := rand.New(rand.NewPCG(seed, 16))
	pick := func(s ...string) string { return s[random.IntN(len(s))] }
	for i := range n {
		g := classGroup{group: newGroup(random, i)}
		top, user := fmt.Sprintf("r%d.test", i), fmt.Sprintf("ann%d", i)
		locals := []string{user, user + "+x", user, "kate", `"` + user + ` q"`}
		var sides []string
		for range 1 + random.IntN(4) {
			name := pick(top, "p1."+top)
			sides = append(sides, pick(pick(locals...)+"@"+name, "@"+name, name, "*."+name))
		}
		if i%8 == 0 {
			sides = append(sides, user+"@")
		}
		for j, e := range g.entries {
			g.entries[j] = pick(sides...) + " " + e
		}
		g.senders = g.senders[:6]
		for range 5 {
			g.recipients = append(g.recipients, pick(append(locals, user+"+y", "bob")...)+"@"+pick("", "z.")+pick(top, "p1."+top))
		}
		groups = append(groups, g)
	}
	return groups
}

// TestRestrictionClasses has Postfix read lists by recipient, and a list beside recipients with
// a policy, as restriction classes with the lines for main.cf that the export prints.
func TestRestrictionClasses(t *testing.T) {
	for _, c := range []struct {
		name, list, parents string
		flags               []string
		lacks               []string
	}{
		{"personal", "personal", "", []string{"--dot-subdomains"}, []string{`"`, "until="}},
		{"personal, default settings", "personal", "smtpd_access_maps", nil, []string{`"`, "until=", " @", " !@", "*."}},
		{"blocked", "blocked", "", []string{"--dot-subdomains", "--classes"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newClassList(t, classGroups(uint64(len(c.name)), harness.IfFull(6, 20)))
			p := l.startClasses(t, c.parents, append([]string{"--list", c.list}, c.flags...)...)
			l.compare(t, p, c.list, c.lacks)
		})
	}
}

// A classList is the lists of the groups.
type classList struct {
	dir    string
	groups []classGroup
}

func newClassList(t *testing.T, groups []classGroup) *classList {
	t.Helper()
	dir, err := os.MkdirTemp("", "sgclasses") // Postfix is not root
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lines := ""
	for _, g := range groups {
		lines += strings.Join(g.entries, "\n") + "\n"
	}
	harness.WriteFile(t, filepath.Join(dir, "personal.txt"), lines)
	harness.WriteFile(t, filepath.Join(dir, "blocked.txt"), "g0\ng1\ng2\ng3\n!s.a.g2\n")
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), classConfig)
	return &classList{dir, groups}
}

// startClasses exports a list, and starts a Postfix as the output says.
func (l *classList) startClasses(t *testing.T, parents string, flags ...string) *harness.Client {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), append([]string{"lists", "export", "--format", "postfix", "--out", filepath.Join(l.dir, "tables")}, flags...)...)
	cmd.Dir = l.dir
	stdout, stderr, code := harness.Run(t, cmd)
	if code > 1 {
		t.Fatalf("export: exit code %d: %s", code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	t.Log(lines[len(lines)-1])
	harness.WriteFile(t, filepath.Join(l.dir, "postmap/main.cf"), "compatibility_level = 3.6\n")
	settings := []string{"recipient_delimiter = +", "parent_domain_matches_subdomains = " + parents, "smtpd_error_sleep_time = 0",
		"smtpd_soft_error_limit = 1000000", "smtpd_hard_error_limit = 1000000", "smtpd_junk_command_limit = 1000000"}
	for line := range strings.Lines(stdout) {
		line = strings.TrimRight(line, "\n")
		table, isMap := strings.CutPrefix(line, "#   postmap ")
		switch {
		case isMap:
			cmd := exec.Command(harness.Program(t, "postmap", "postfix"), "-c", filepath.Join(l.dir, "postmap"), table)
			if stdout, stderr, code := harness.Run(t, cmd); code != 0 || stdout+stderr != "" {
				t.Fatalf("postmap: exit code %d: %s%s", code, stdout, stderr)
			}
		case strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, " "):
			settings[len(settings)-1] += line
		default:
			settings = append(settings, line)
		}
	}
	p := harness.StartPostfix(t, harness.Everywhere, settings...)
	return harness.MustDial(t, p.Addr)
}

// compare asks Postfix about each sender and recipient, and the gate's code, and compares.
func (l *classList) compare(t *testing.T, p *harness.Client, list string, lacks []string) {
	t.Helper()
	gate := l.gate(t, list)
	compared, refused, milder := 0, 0, 0
	for _, g := range l.groups {
		whole := !slices.ContainsFunc(g.entries, func(e string) bool {
			return slices.ContainsFunc(lacks, func(part string) bool { return strings.Contains(e, part) }) ||
				strings.HasSuffix(e, "@") // before a domain in another line for the recipient
		})
		for _, s := range g.senders {
			for i, got := range askPostfix(t, p, s, g.recipients) {
				want := gate(s, g.recipients[i])
				compared++
				if want != "250" {
					refused++
				}
				switch {
				case got == want:
				case got == "250" && !whole:
					milder++
				default:
					t.Errorf("%s to %s: %s, by the gate %s; lines:\n%s", s, g.recipients[i], got, want, strings.Join(g.entries, "\n"))
				}
			}
		}
	}
	t.Logf("%d decisions compared, %d refused by the gate; 0 differences but %d let through for entries that were left out", compared, refused, milder)
	if refused < compared/20 || refused-milder < compared/50 {
		t.Errorf("only %d of %d refused, %d of them not", refused, compared, milder)
	}
}

// gate returns a function that returns the first digits of the gate's reply to a recipient, by
// one list alone.
func (l *classList) gate(t *testing.T, list string) func(sender, recipient string) string {
	t.Helper()
	c, err := gateconfig.Load(filepath.Join(l.dir, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), lists)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	judged, err := setup.FindJudged(c, "")
	if err == nil {
		err = judged.Policy.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	checker := judge.Checker{Store: s, Lists: []string{list}}
	return func(sender, recipient string) string {
		var classes smtpfilter.Classes
		classes.Begin(t.Context(), &judged.Policy, checker.Judge(), &verdict.Message{ReversePath: strings.Trim(sender, "<>")})
		class := classes.Of(t.Context(), verdict.ParseRecipient(recipient))
		switch action := class.Envelope.Verdict.Action; {
		case class.Envelope.Err != nil:
			t.Fatal(class.Envelope.Err)
		case class.Exempt || action < verdict.Defer:
		case action == verdict.Reject:
			return "554"
		default:
			return "450"
		}
		return "250"
	}
}

// askPostfix returns the codes of Postfix's replies to the recipients of a message. It is not
// asked about senders whose syntax Postfix refuses.
func askPostfix(t *testing.T, p *harness.Client, sender string, recipients []string) (codes []string) {
	t.Helper()
	ask := func(command string) string {
		reply, err := p.Ask(command)
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return reply
	}
	switch reply := ask("MAIL FROM:<" + strings.Trim(sender, "<>") + "> SMTPUTF8"); {
	case strings.HasPrefix(reply, "501 5.1.7"):
		return nil
	case !strings.HasPrefix(reply, "250"):
		t.Fatalf("MAIL FROM:<%s>: %q", sender, reply)
	}
	for _, r := range recipients {
		codes = append(codes, ask("RCPT TO:<" + r + ">")[:3])
	}
	ask("RSET")
	return codes
}
