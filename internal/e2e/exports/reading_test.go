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
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"spamgate/internal/e2e/harness"
)

// The tests of this file go the other way: random files in the formats of other programs,
// which the program reads itself, decide in the gate as they do there.

// A dialect writes random lines of a format.
type dialect struct {
	format, match string

	// line writes a line about a name.
	line func(r *rand.Rand, user, name string) string

	// once says that a pattern may not repeat.
	once bool
}

// groups returns random groups of lines, each below a top-level domain of its own, with
// senders who match them or nearly do.
func (d dialect) groups(seed uint64, senders int) (groups []group) {
	r := rand.New(rand.NewPCG(seed, 14))
	for n := range (senders + perGroup - 1) / perGroup {
		top, user := fmt.Sprintf("g%d", n), fmt.Sprintf("u%d", n)
		names := []string{top, "a." + top, "a." + top, "b." + top, "s.a." + top, "s.a." + top, "t.s.a." + top, "y.x.t.s.a." + top, "n_1.a." + top}
		pick := func(s ...string) string { return s[r.IntN(len(s))] }
		var g group
		seen := map[string]bool{}
		for range 1 + r.IntN(8) {
			line := d.line(r, user, pick(names...))
			pattern, _, _ := strings.Cut(line, " ")
			if d.once && seen[pattern] {
				continue
			}
			seen[pattern] = true
			g.entries = append(g.entries, line)
		}
		for range perGroup {
			g.senders = append(g.senders, pick(user, user, user+"+t", "v"+user)+"@"+pick("", "", "z.", "w.v.")+pick(names...))
		}
		groups = append(groups, g)
	}
	return groups
}

// read writes the groups into a file, and has spamgate check judge their senders by it.
func (d dialect) read(t *testing.T, groups []group) (l *list, file string) {
	t.Helper()
	l = newList(t, d.match, nil)
	l.groups = groups
	var lines, senders strings.Builder
	for _, g := range groups {
		fmt.Fprintln(&lines, strings.Join(g.entries, "\n"))
		fmt.Fprintln(&senders, strings.Join(g.senders, "\n"))
	}
	file = filepath.Join(l.dir, "original")
	harness.WriteFile(t, file, d.head()+lines.String())
	harness.WriteFile(t, filepath.Join(l.dir, "config.toml"), strings.Replace(fmt.Sprintf(config, d.match),
		`"blocked.txt"`, `"original"`+"\nformat = \""+d.format+`"`, 1))
	l.gate = l.judge(t, senders.String())
	return l, file
}

func (d dialect) head() string {
	if d.format == "rpz" {
		return "$TTL 1h\n@ SOA localhost. hostmaster.localhost. ( 1 1h 15m 30d 2h )\n  NS localhost.\n" + marker + " CNAME .\n"
	}
	return ""
}

// compareWith asks the original program about each sender. Documented reports whether
// a sender is one of those whom the original lets through and the gate refuses.
func (l *list) compareWith(t *testing.T, refuses func(sender string) (refused, asked bool), documented func(g group, sender string) bool) {
	t.Helper()
	compared, refused, known := 0, 0, 0
	for _, g := range l.groups {
		for _, s := range g.senders {
			got, asked := refuses(s)
			if !asked {
				continue
			}
			want := l.gate[s] == "reject" || l.gate[s] == "defer"
			compared++
			switch {
			case got:
				refused++
			case want && documented != nil && documented(g, s):
				known++
				continue
			}
			if got != want {
				t.Errorf("%s: refused %v, by the gate %v; lines:\n%s", s, got, want, strings.Join(g.entries, "\n"))
				if compared > 2000 {
					t.FailNow()
				}
			}
		}
	}
	t.Logf("%d decisions compared, %d refused; 0 differences but %d documented", compared, refused, known)
	if refused < compared/20 || refused > compared*19/20 {
		t.Errorf("%d of %d refused", refused, compared)
	}
}

// TestReadPostfix has Postfix and the gate read tables with all actions, and repeated keys.
func TestReadPostfix(t *testing.T) {
	for _, c := range []struct{ name, match, parents string }{{"default", "subtree", "smtpd_access_maps"}, {"dots", "exact", ""}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := dialect{format: "postfix", match: c.match, line: func(r *rand.Rand, user, name string) string {
				pick := func(s ...string) string { return s[r.IntN(len(s))] }
				patterns := []string{name, name, strings.ToUpper(name), user + "@" + name, user + "+t@" + name, user + "@"}
				if c.parents == "" {
					patterns = append(patterns, "."+name, "."+name)
				}
				return pick(patterns...) + " " + pick("REJECT", "REJECT", "reject", "REJECT 5.7.1 a text", "550 5.7.1 no", "450 later", "DEFER", "REJECT\n  that goes on",
					"OK", "DUNNO", "RELAY", "12", "HOLD", "PREPEND X-A: b", "WARN", "INFO")
			}}
			l, table := d.read(t, d.groups(1, decisions()))
			l.compareWith(t, startReader(t, l.dir, table, c.parents).decides, nil)
		})
	}
}

// startReader starts a Postfix with a table as it is: with a warning for each repeated key.
func startReader(t *testing.T, dir, source, parents string) *accessTable {
	t.Helper()
	harness.WriteFile(t, filepath.Join(dir, "postmap/main.cf"), "compatibility_level = 3.6\n")
	cmd := exec.Command(harness.Program(t, "postmap", "postfix"), "-c", filepath.Join(dir, "postmap"), "hash:"+source)
	if stdout, stderr, code := harness.Run(t, cmd); code != 0 {
		t.Fatalf("postmap: exit code %d: %s%s", code, stdout, stderr)
	}
	return servePostfix(t, source, parents)
}

// decides reports whether Postfix refuses a sender, for good or for the time being.
func (a *accessTable) decides(sender string) (refused, asked bool) {
	reply, err := a.client.Ask("MAIL FROM:<" + sender + ">")
	if err == nil && strings.HasPrefix(reply, "250") {
		reply, err = a.client.Ask("RSET")
	}
	if err != nil {
		a.t.Fatalf("MAIL FROM:<%s>: %v", sender, err)
	}
	return !strings.HasPrefix(reply, "250"), true
}

// TestReadRBLDNSD has rbldnsd and the gate read a dnset.
func TestReadRBLDNSD(t *testing.T) {
	t.Parallel()
	d := dialect{format: "rbldnsd", match: "subtree", line: func(r *rand.Rand, _, name string) string {
		pick := func(s ...string) string { return s[r.IntN(len(s))] }
		return pick("", "", "", "!") + pick("", ".", "*.") + name + pick("", "", " :127.0.0.3:a text", " a text of $", " # a comment")
	}}
	l, file := d.read(t, d.groups(2, decisions()))
	l.compareWith(t, startRBLDNSD(t, file).refuses, nil)
}

// TestReadNamed has BIND's named and the gate read a response policy zone. The gate refuses
// more only where a record ends a wildcard in named.
func TestReadNamed(t *testing.T) {
	t.Parallel()
	d := dialect{format: "rpz", match: "subtree", once: true, line: func(r *rand.Rand, _, name string) string {
		pick := func(s ...string) string { return s[r.IntN(len(s))] }
		return pick("", "*.") + name + pick(" ", " 300 IN ", " IN ") + "CNAME " + pick(".", ".", ".", "*.", "rpz-passthru.")
	}}
	l, file := d.read(t, d.groups(3, decisions()))
	server := startNamed(t, l.dir, file)
	l.compareWith(t, func(sender string) (refused, asked bool) {
		code, answers := server.ask(domainOf(sender) + ".")
		return code == dnsmessage.RCodeNameError || answers == 0, true
	}, func(g group, sender string) bool { return endsWildcard(g.entries, domainOf(sender)) })
}

// endsWildcard reports whether a record of a zone ends the wildcard above it for a name (RFC
// 4592, section 3.3.1), which docs/lists.md tells.
func endsWildcard(records []string, name string) bool {
	for ; name != ""; _, name, _ = strings.Cut(name, ".") {
		_, above, _ := strings.Cut(name, ".")
		exists, wild := false, false
		for _, record := range records {
			owner, _, _ := strings.Cut(record, " ")
			owner, wildcard := strings.CutPrefix(owner, "*.")
			exists = exists || strings.HasSuffix("."+owner, "."+name)
			wild = wild || wildcard && strings.HasSuffix("."+above, "."+owner)
		}
		if exists && wild {
			return true
		}
	}
	return false
}

// TestReadDnsmasq has dnsmasq and the gate read a configuration. Every other name has an
// address.
func TestReadDnsmasq(t *testing.T) {
	t.Parallel()
	program := harness.Program(t, "dnsmasq", "dnsmasq-base")
	d := dialect{format: "dnsmasq", match: "subtree", line: func(r *rand.Rand, _, name string) string {
		pick := func(s ...string) string { return s[r.IntN(len(s))] }
		return fmt.Sprintf(pick("address=/%s/", "address=/%s/", "local=/%s/", "server=/%s/", "address=/.%s/", "server=/%s/#", "address=/*.%s/", "address=/%s/192.0.2.1"), name)
	}}
	l, file := d.read(t, d.groups(4, decisions()))
	host, port := "127.0.0.1", freePort(t)
	server := startDNS(t, host, port, exec.Command(program, "-k", "-h", "-R", "-C", file, "-z", "-a", host, "-p", port, "-u", "nobody", "--pid-file=", "--address=/#/192.0.2.9"))
	l.compareWith(t, func(sender string) (refused, asked bool) {
		code, answers, err := server.query(domainOf(sender)+".", 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return code == dnsmessage.RCodeNameError || code == dnsmessage.RCodeSuccess && answers == 0, true
	}, nil)
}

// TestReadExim has Exim and the gate read a file for lsearch. Exim looks up the address and *@ with its
// domain, then the domain. Of several *. the first line counts there, so the longest come first here.
func TestReadExim(t *testing.T) {
	t.Parallel()
	d := dialect{format: "exim", match: "subtree", line: func(r *rand.Rand, user, name string) string {
		pick := func(s ...string) string { return s[r.IntN(len(s))] }
		return pick("", "", "*@", "*.", "*.", user+"@", user+"+t@") + pick(name, strings.ToUpper(name)) +
			pick(": deny", ":reject", " : a text", ": defer", " refused", ":", ": accept", ": OK")
	}}
	groups := d.groups(5, decisions())
	for i := range groups {
		seen := map[string]bool{}
		groups[i].entries = slices.DeleteFunc(groups[i].entries, func(line string) bool {
			key := strings.TrimPrefix(strings.ToLower(strings.TrimRight(strings.Fields(line)[0], ":")), "*@")
			key, _, _ = strings.Cut(key, ":")
			defer func() { seen[key] = true }()
			return seen[key]
		})
		slices.SortStableFunc(groups[i].entries, func(a, b string) int {
			depth := func(line string) int {
				key, _, _ := strings.Cut(strings.Fields(line)[0], ":")
				if !strings.HasPrefix(key, "*.") {
					return 100
				}
				return strings.Count(key, ".")
			}
			return depth(b) - depth(a)
		})
	}
	l, file := d.read(t, groups)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var senders, texts []string
	for _, g := range groups {
		for _, s := range g.senders {
			senders = append(senders, s)
			texts = append(texts, fmt.Sprintf("${lookup{%s}lsearch*@{/tmp/list}{found $value}{${lookup{%s}wildlsearch{/tmp/list}{found $value}{none}}}}", s, domainOf(s)))
		}
	}
	text := map[string]string{}
	for i, line := range harness.EximExpand(t, map[string]string{"list": string(content)}, texts) {
		text[senders[i]] = strings.ToLower(line)
	}
	l.compareWith(t, func(sender string) (refused, asked bool) {
		value, found := strings.CutPrefix(text[sender], "found")
		value = strings.TrimSpace(value)
		return found && value != "accept" && value != "ok", !strings.Contains(sender, "+") // Exim knows no tags
	}, nil)
}

// TestReadSendmail has Sendmail and the gate read an access table.
func TestReadSendmail(t *testing.T) {
	t.Parallel()
	d := dialect{format: "sendmail", match: "subtree", line: func(r *rand.Rand, user, name string) string {
		pick := func(s ...string) string { return s[r.IntN(len(s))] }
		return pick("", "From:", "from:") + pick(name, name, "."+name, user+"@"+name) + // docs/lists.md tells of user@
			pick("\tREJECT", "  reject", "\t550 no", "\t450 later", "\tERROR:5.7.1:550 a text", "\tERROR:4.7.1:450 later", "\tERROR:\"550 5.7.1 a text\"",
				"\tOK", "\tRELAY", "\tQUARANTINE:held", "\tgo away")
	}}
	groups := d.groups(6, decisions())
	for i := range groups {
		seen := map[string]bool{}
		groups[i].entries = slices.DeleteFunc(groups[i].entries, func(line string) bool { // see docs/lists.md on From:
			key := strings.TrimPrefix(strings.ToLower(strings.Fields(line)[0]), "from:")
			defer func() { seen[key] = true }()
			return seen[key]
		})
	}
	l, file := d.read(t, groups)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := harness.StartSendmailWithAccess(t, harness.FreeAddr(t), string(content), "FEATURE(`access_db', `hash -T<TMPF> /etc/mail/access')",
		"FEATURE(`lookupdotdomain')")
	client := harness.MustDial(t, s.Addr)
	l.compareWith(t, func(sender string) (refused, asked bool) {
		if strings.Contains(sender, "+") {
			return false, false
		}
		reply, err := client.Ask("MAIL FROM:<" + sender + ">")
		if err == nil && strings.HasPrefix(reply, "250") {
			_, err = client.Ask("RSET")
		}
		if err != nil {
			t.Fatalf("MAIL FROM:<%s>: %v", sender, err)
		}
		return !strings.HasPrefix(reply, "250"), true
	}, nil)
}
