package exports

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// A group is a random list of some entries below one top-level domain, and senders who
// match them or nearly do. The groups of a list do not touch each other.
type group struct {
	entries []string // lines of a plain list
	senders []string
}

// perGroup is the number of senders of a group.
const perGroup = 20

// groupsFor returns groups with at least so many senders.
func groupsFor(seed uint64, senders int) (groups []group) {
	random := rand.New(rand.NewPCG(seed, 13))
	for n := range (senders + perGroup - 1) / perGroup {
		groups = append(groups, newGroup(random, n))
	}
	return groups
}

func newGroup(random *rand.Rand, n int) (g group) {
	pick := func(s ...string) string { return s[random.IntN(len(s))] }
	top := fmt.Sprintf("g%d", n)
	names := []string{top, "a." + top, "a." + top, "b." + top, "s.a." + top, "s.a." + top, "t.s.a." + top, "x.t.s.a." + top, "y.x.t.s.a." + top}
	odd := []string{"a+b." + top, "n_1.a." + top, "xn--bcher-kva.a." + top, strings.Repeat("long.", 37) + top,
		fmt.Sprintf("[10.%d.%d.1]", n/256, n%256), fmt.Sprintf("[IPv6:2001:db8::%x]", n)}
	user := fmt.Sprintf("u%d", n)
	locals := []string{user, user, user + "+t", "v" + user, `"` + user + ` q"`, `"` + user + `+t q"`}
	name := func() string {
		if random.IntN(12) == 0 {
			return pick(odd...)
		}
		return pick(names...)
	}
	for range 1 + random.IntN(9) {
		var entry string
		switch d := name(); {
		case random.IntN(4) == 0:
			entry = pick(locals...) + "@" + d
		case random.IntN(8) == 0:
			entry = pick(locals...) + "@"
		case strings.HasPrefix(d, "["):
			entry = "@" + d
		default:
			entry = pick("", "", "", ".", "*.", "@") + d
		}
		if random.IntN(3) == 0 {
			entry = "!" + entry
		}
		if random.IntN(12) == 0 {
			entry += " # until=2099-12-31"
		}
		g.entries = append(g.entries, entry)
	}
	if n == 3 {
		g.entries = append(g.entries, "<>")
	}
	for range perGroup - 1 {
		d := name()
		if d[0] != '[' {
			d = pick("", "", "", "z.") + d
		}
		if random.IntN(2) == 0 {
			d = strings.Replace(d, "xn--bcher-kva", "bücher", 1)
		}
		g.senders = append(g.senders, pick(append(locals, user+"+w", "w")...)+"@"+d)
	}
	g.senders = append(g.senders, "w@g.example")
	if n == 3 {
		g.senders[0] = "<>"
	}
	return g
}

// A list is a list of groups that the program has exported, and what spamgate check says
// of the senders.
type list struct {
	dir    string
	groups []group
	gate   map[string]string // the action for a sender: "accept", "reject"
}

// config is the configuration. Suffixes are allowed, since each group has a top-level
// domain of its own.
const config = `[[list]]
name = "blocked"
path = "blocked.txt"
match = "%s"
allow_public_suffix = true
[state]
dir = "state"
`

// marker is an entry of each list and of each zone, by which a test sees that a server has
// loaded it.
const marker = "ready.test"

// newList writes a list, and has spamgate check judge its senders.
func newList(t *testing.T, match string, groups []group) *list {
	t.Helper()
	dir, err := os.MkdirTemp("", "sgexports") // t.TempDir is for root alone, and some servers are not root
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	l := &list{dir: dir, groups: groups}
	var entries, senders strings.Builder
	for _, g := range groups {
		fmt.Fprintln(&entries, strings.Join(g.entries, "\n"))
		fmt.Fprintln(&senders, strings.Join(g.senders, "\n"))
	}
	harness.WriteFile(t, filepath.Join(l.dir, "blocked.txt"), marker+"\n"+entries.String())
	harness.WriteFile(t, filepath.Join(l.dir, "config.toml"), fmt.Sprintf(config, match))
	l.gate = l.judge(t, senders.String())
	return l
}

// judge returns what spamgate check says of the senders, one a line.
func (l *list) judge(t *testing.T, senders string) map[string]string {
	t.Helper()
	cmd := exec.Command(harness.Binary(t), "check", "--all", "-")
	cmd.Dir, cmd.Stdin = l.dir, strings.NewReader(senders)
	out, stderr, code := harness.Run(t, cmd)
	lines, asked := strings.Split(strings.TrimSpace(out), "\n"), strings.Split(strings.TrimSpace(senders), "\n")
	if code > 1 || len(lines) != len(asked) {
		t.Fatalf("check: exit code %d, %d answers for %d senders: %s", code, len(lines), len(asked), stderr)
	}
	actions := map[string]string{}
	for i, line := range lines {
		action, _, _ := strings.Cut(line, "\t")
		actions[asked[i]] = action
	}
	return actions
}

// export writes the list in a format, and returns the path of the file and what was said
// on standard error.
func (l *list) export(t *testing.T, format string, more ...string) (path, stderr string) {
	t.Helper()
	path = filepath.Join(l.dir, format+strings.Join(more, ""))
	cmd := exec.Command(harness.Binary(t), append([]string{"lists", "export", "--format", format, "--out", path}, more...)...)
	cmd.Dir = l.dir
	_, stderr, code := harness.Run(t, cmd)
	if code > 1 || code == 1 != strings.Contains(stderr, " left out") {
		t.Fatalf("export: exit code %d: %s", code, stderr)
	}
	return path, stderr
}

// compare asks another program about each sender, and compares. Lacks reports whether the
// format cannot express an entry, as documented. It returns how many decisions were
// compared, and how many senders were let through because of such entries.
func (l *list) compare(t *testing.T, refuses func(sender string) (refused, asked bool), lacks func(entry string) bool) {
	t.Helper()
	compared, refused, milder := 0, 0, 0
	for _, g := range l.groups {
		whole := true
		for _, e := range g.entries {
			whole = whole && !strings.Contains(e, "until=") && !lacks(e)
		}
		for _, s := range g.senders {
			want := l.gate[s] == "reject"
			got, asked := refuses(s)
			if !asked {
				continue
			}
			compared++
			if want {
				refused++
			}
			if want && !got && !whole {
				milder++
			} else if got != want {
				t.Errorf("%s: refused %v, the gate refuses it: %v; entries:\n%s", s, got, want, strings.Join(g.entries, "\n"))
			}
			if t.Failed() && compared > 2000 {
				t.FailNow()
			}
		}
	}
	t.Logf("%d decisions compared, %d refused by the gate; 0 differences but %d let through for entries that were left out", compared, refused, milder)
	if refused < compared/10 || refused-milder < compared/50 {
		t.Errorf("only %d of %d refused, %d of them not", refused, compared, milder)
	}
}

// decisions returns how many senders a test has. Some are not asked about: a name server has
// no answer for an address literal.
func decisions() int { return harness.IfFull(500, 11_000) }

// domainOf returns the domain of a sender, or "" if a DNS server is not asked about it.
func domainOf(sender string) string {
	_, domain, _ := strings.Cut(sender, "@")
	if strings.HasPrefix(domain, "[") {
		return ""
	}
	return strings.Replace(domain, "bücher", "xn--bcher-kva", 1) // as a DNS client does
}

// notForZones reports whether a zone cannot have an entry.
func notForZones(entry string) bool {
	name := strings.TrimLeft(strings.TrimPrefix(entry, "!"), "@.*")
	return strings.ContainsAny(name, "@<[+") || len(name) > 180
}
