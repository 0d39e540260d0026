package listcompare

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
)

// listSet is a configuration with its list files, for tests of decisions.
type listSet struct {
	dir   string
	names []string
	texts [][]string // the lines of each list
	later []string   // days on which some entries expire
}

// newListSet makes lists of few names, so that most entries relate to others.
func newListSet(t *testing.T, r *rand.Rand) *listSet {
	t.Helper()
	s := &listSet{dir: t.TempDir(), later: []string{"2090-01-01", "2095-01-01"}}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	config := "[filter]\nkind = \"sized\"\n[policy]\nallow_discard = true\nmode = \"" + pick("enforce", "enforce", "monitor") + "\"\n"
	for i := range 2 + r.IntN(4) {
		name := fmt.Sprint("l", i)
		s.names = append(s.names, name)
		config += fmt.Sprintf("[[list]]\nname = %q\npath = %q\nmatch = %q\npublic_reason = %t\n", name, name+".txt", pick("subtree", "subtree", "exact"), r.IntN(2) == 0)
		stages := pick("", "", `["envelope"]`, `["header"]`)
		if stages != "" {
			config += "stage = " + stages + "\n"
		}
		allow := r.IntN(3) == 0
		if allow {
			config += fmt.Sprintf("type = \"allow\"\noverride = %t\n", r.IntN(3) == 0)
		} else {
			config += "action = \"" + pick(append([]string{"reject"}, blockActions...)...) + "\"\n"
			if r.IntN(4) == 0 && !strings.Contains(stages, "envelope") {
				config += "header_action = \"" + pick("reject", "defer", "tag", "monitor") + "\"\n"
			}
		}
		s.texts = append(s.texts, randomLines(r, allow, s.later))
	}
	if r.IntN(2) == 0 {
		config += "[[listener]]\nname = \"one\"\naddr = \"127.0.0.1:0\"\nlists = [\"" + strings.Join(s.names[:1+r.IntN(len(s.names))], `", "`) + "\"]\n"
	}
	if r.IntN(2) == 0 {
		config += "[[policy_service]]\nname = \"door\"\naddr = \"127.0.0.1:0\"\nlists = [\"" + pick(s.names...) + "\"]\n"
	}
	if err := os.WriteFile(filepath.Join(s.dir, "config.toml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return s
}

func randomLines(r *rand.Rand, allow bool, later []string) []string {
	var lines []string
	for range 1 + r.IntN(25) {
		domain := fmt.Sprintf("d%d.example", r.IntN(2))
		if r.IntN(2) == 0 {
			domain = fmt.Sprintf("s%d.%s", r.IntN(2), domain)
		}
		user := fmt.Sprintf("u%d", r.IntN(2))
		if r.IntN(3) == 0 {
			user += "+tag"
		}
		line := []string{domain, domain, "." + domain, "@" + domain, "*." + domain, user + "@" + domain, user + "@" + domain, user + "@"}[r.IntN(8)]
		if !allow && r.IntN(8) == 0 {
			line = "!" + line
		}
		line += " #"
		if r.IntN(5) == 0 {
			line += " until=" + later[r.IntN(len(later))]
		}
		line += fmt.Sprintf(" reason %d", r.IntN(3))
		lines = append(lines, line)
	}
	return lines
}

// config writes the files and loads the configuration.
func (s *listSet) config(t *testing.T, texts [][]string) *config.Config {
	t.Helper()
	for i, name := range s.names {
		if err := os.WriteFile(filepath.Join(s.dir, name+".txt"), []byte("# a list\n"+strings.Join(texts[i], "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(filepath.Join(s.dir, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// without returns the lines that are not marked, and have not expired on a day.
func without(texts [][]string, removed []map[int]bool, day string) [][]string {
	left := make([][]string, len(texts))
	for i, lines := range texts {
		for n, line := range lines {
			_, until, ends := strings.Cut(line, "until=")
			if !removed[i][n+2] && !(ends && until[:10] <= day) {
				left[i] = append(left[i], line)
			}
		}
	}
	return left
}

// decisions returns what is decided of all senders at all stages and listeners.
func (s *listSet) decisions(t *testing.T, texts [][]string) map[string]verdict.Action {
	t.Helper()
	c := s.config(t, texts)
	b, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.StateDir = ""
	set, _, err := store.Build(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	views := map[string]*blocklist.View{"all": set.Only(s.names)}
	for _, l := range c.Listeners {
		if len(l.Lists) > 0 {
			views["one"] = set.Only(l.Lists)
		}
	}
	for _, d := range c.Doors {
		views[d.Name] = set.Only(d.Lists)
	}
	all := map[string]verdict.Action{}
	for _, address := range testSenders() {
		a, err := sender.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		for _, stage := range []verdict.Stage{verdict.Envelope, verdict.Header} {
			for name, view := range views {
				v, err := view.Lookup(stage, a)
				if err != nil {
					t.Fatal(err)
				}
				place := fmt.Sprint(name, " ", stage, " ", address)
				all[place] = v.Action
				if v.Would != nil {
					all[place+", if it were enforced"] = v.Would.Action
				}
				if v.ClearsMessage {
					all[place+" clears the message"] = verdict.Accept
				}
				guess, err := view.Find(stage, a, blocklist.FindOptions{Blocks: true})
				if err != nil {
					t.Fatal(err)
				}
				all[place+", as a form"] = blocklist.Decide([]blocklist.Found{guess}, nil).Action
			}
		}
	}
	return all
}

func testSenders() []string {
	var all []string
	for _, user := range []string{"u0", "u1", "u0+tag", "u1+tag", "u0+other", "nobody"} {
		for _, domain := range []string{"d0.example", "d1.example", "s0.d0.example", "s1.d0.example", "s0.d1.example", "deep.s0.d0.example", "other.example"} {
			all = append(all, user+"@"+domain)
		}
	}
	return all
}

// superfluous returns the lines that may be removed from each list.
func superfluous(t *testing.T, c *config.Config) []map[int]bool {
	t.Helper()
	s := NewSuperfluous(c, listfiles.NewKey(), false)
	var lists []*listfiles.List
	for _, l := range c.Lists {
		list, err := listfiles.New(l)
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, list)
	}
	scan := listfiles.NewScan(t.Context(), lists, t.Output())
	for _, l := range lists {
		if _, err := s.Add(scan, l, func(listfile.Entry) bool { return false }); err != nil {
			t.Fatal(err)
		}
	}
	removed := make([]map[int]bool, len(lists))
	for i, l := range slices.Backward(lists) {
		removed[i] = map[int]bool{}
		_, err := scan.File(setup.Opener(l.List), l.Paths[0], l.Options, func(e listfile.Entry) error {
			_, ok, err := s.Remove(i, 0, e)
			if ok {
				removed[i][e.Line] = true
			}
			return err
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	return removed
}

// TestSuperfluous removes what is found from random lists. Every decision stays, now and when
// entries have expired. SPAMGATE_COMPARE sets the number of sets of lists.
func TestSuperfluous(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv("SPAMGATE_COMPARE"))
	if err != nil {
		rounds = 20
	}
	total, lines := 0, 0
	for seed := range uint64(rounds) {
		s := newListSet(t, rand.New(rand.NewPCG(seed, 3)))
		removed := superfluous(t, s.config(t, s.texts))
		none := make([]map[int]bool, len(s.names))
		for _, day := range append([]string{""}, s.later...) {
			before, after := s.decisions(t, without(s.texts, none, day)), s.decisions(t, without(s.texts, removed, day))
			if !maps.Equal(before, after) {
				text, _ := os.ReadFile(filepath.Join(s.dir, "config.toml"))
				for place, action := range before {
					if after[place] != action {
						t.Errorf("seed %d, day %q: %s: %v, and %v before", seed, day, place, after[place], action)
					}
				}
				t.Fatalf("%s\n%s\nremoved %v", text, strings.Join(slices.Concat(s.texts...), "\n"), removed)
			}
		}
		for i := range removed {
			total, lines = total+len(removed[i]), lines+len(s.texts[i])
		}
	}
	t.Logf("%d of %d entries removed", total, lines)
	if total*20 < lines {
		t.Errorf("only %d of %d entries were found superfluous", total, lines)
	}
}

// TestSuperfluousCases has entries that are superfluous, and some that only seem so.
func TestSuperfluousCases(t *testing.T) {
	const block, allow, override = "", "type = \"allow\"\n", "type = \"allow\"\noverride = true\n"
	for _, c := range []struct {
		name   string
		lists  []string // pairs of settings and entries
		remove string   // of l0, l1 …: "0:user@x.example"
	}{
		{"a broader entry", []string{block, "user@x.example x.example"}, "0:user@x.example"},
		{"twice", []string{block, "x.example X.Example."}, "0:X.Example."},
		{"an exception between", []string{block, "user@x.example !@x.example x.example"}, ""},
		{"an allow entry between", []string{block, "user@x.example x.example", allow, "@x.example"}, ""},
		{"an allow entry that shields both", []string{block, "user@x.example x.example", allow, "user@x.example"}, "0:user@x.example"},
		{"a block entry between", []string{allow, "user@x.example x.example", block, "@x.example"}, ""},
		{"both block, one stays", []string{block, "x.example", block, "x.example"}, "1:x.example"},
		{"a plain allow entry covers no override", []string{override, "user@x.example", allow, "x.example"}, ""},
		{"an override covers a plain one", []string{override, "x.example", allow, "user@x.example", block, "@x.example"}, "1:user@x.example"},
		{"a milder action", []string{"action = \"reject\"\n", "user@x.example", "action = \"defer\"\n", "x.example"}, ""},
		{"a stricter action", []string{"action = \"reject\"\n", "x.example", "action = \"defer\"\n", "user@x.example"}, "1:user@x.example"},
		{"a tag names its list", []string{"action = \"reject\"\n", "x.example", "action = \"tag\"\n", "user@x.example"}, ""},
		{"an exception below", []string{block, "x.example !user@x.example", block, "x.example"}, "0:x.example"},
		{"a door that asks one list", []string{block, "x.example", "[[milter]]\naddr = \"127.0.0.1:0\"\nlists = [\"l1\"]\n", "x.example"}, "0:x.example"},
		{"a hash finds the address alone", []string{"[[dns_server]]\naddr = \"127.0.0.1:0\"\nhashed_zone = \"h.example\"\n", "user@x.example x.example"}, ""},
		{"a hash finds the address in another list", []string{"[[dns_server]]\naddr = \"127.0.0.1:0\"\nhashed_zone = \"h.example\"\n", "user@x.example", block, "user@x.example"}, "1:user@x.example"},
		{"a hash of another list", []string{block, "user@x.example x.example", "[[dns_server]]\naddr = \"127.0.0.1:0\"\nhashed_zone = \"h.example\"\nlists = [\"l1\"]\n", "y.example"}, "0:user@x.example"},
		{"an allow entry for a recipient between", []string{block, "user@x.example x.example", "type = \"allow\"\nper_recipient = true\n", "r@a.example @x.example#c"}, ""},
		{"a line for a recipient", []string{"per_recipient = true\n", "r@a.example x.example#c", block, "x.example"}, ""},
		{"a proof is asked for", []string{allow, "x.example", "type = \"allow\"\nproven_by = [\"spf\"]\n", "user@x.example"}, "1:user@x.example"},
		{"a proof is asked for, and may fail", []string{"type = \"allow\"\nproven_by = [\"spf\"]\n", "x.example", allow, "user@x.example"}, ""},
		{"other proofs", []string{"type = \"allow\"\nproven_by = [\"spf\"]\n", "x.example", "type = \"allow\"\nproven_by = [\"dkim\"]\n", "user@x.example"}, ""},
		{"recipients for whom one list counts", []string{block, "x.example", "[[recipient_policy]]\nmatch = [\"r@a.example\"]\nlists = [\"l1\"]\n", "x.example"}, "0:x.example"},
		{"another stage", []string{"stage = [\"envelope\"]\n", "x.example", block, "x.example"}, "0:x.example"},
		{"it ends earlier", []string{block, "user@x.example|x.example#until=2090-01-01"}, ""},
		{"it ends later", []string{block, "user@x.example#until=2090-01-01|x.example#until=2095-01-01"}, "0:user@x.example"},
	} {
		s := &listSet{dir: t.TempDir()}
		text := ""
		for i := 0; i < len(c.lists); i += 2 {
			name := fmt.Sprint("l", i/2)
			s.names = append(s.names, name)
			text += fmt.Sprintf("[[list]]\nname = %q\npath = %q\n%s", name, name+".txt", c.lists[i])
			s.texts = append(s.texts, strings.FieldsFunc(strings.ReplaceAll(c.lists[i+1], "#", " # "), func(r rune) bool {
				return r == '|' || r == ' ' && !strings.Contains(c.lists[i+1], "#")
			}))
		}
		if err := os.WriteFile(filepath.Join(s.dir, "config.toml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var got []string
		for i, lines := range superfluous(t, s.config(t, s.texts)) {
			for _, line := range slices.Sorted(maps.Keys(lines)) {
				entry, _, _ := strings.Cut(s.texts[i][line-2], " ")
				got = append(got, fmt.Sprint(i, ":", entry))
			}
		}
		if strings.Join(got, " ") != c.remove {
			t.Errorf("%s: removes %q, want %q", c.name, got, c.remove)
		}
	}
}
