// Package adguard compares how the gate and AdGuard's own engine read lists for ad blockers.
package adguard

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/AdguardTeam/urlfilter"
)

// senders is how many senders are judged by each of two.
const senders = 8000

// TestSameVerdicts has the engine and the gate judge senders by random lists, which have the forms
// that mean a name, in any order, and exceptions in any place. Each group of lines is below a
// top-level domain of its own.
func TestSameVerdicts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 27))
	pick := func(s ...string) string { return s[r.IntN(len(s))] }
	var rules, names []string
	lines := map[string][]string{} // of the names' groups
	for n := range senders / 20 {
		top := fmt.Sprintf("group%04d", n)
		below := []string{"a." + top, "a." + top, "b." + top, "s.a." + top, "s.a." + top, "t.s.a." + top, "y.x.t.s.a." + top, "n_1.a." + top}
		var group []string
		for range 1 + r.IntN(8) {
			group = append(group, fmt.Sprintf(pick(
				"||%s^", "||%s^", "||%s^", "||%s", "||%s|", "||*.%s^", "|%s^", "|%s|", "%s", "0.0.0.0 %s", "||%s^$important",
				"@@||%s^", "@@||%s^", "@@|%s|", "@@|%s^", "@@||*.%s^", "@@%s", "@@||%s"), pick(below...)))
		}
		rules = append(rules, group...)
		for range 20 {
			name := pick("", "", "z.", "w.v.") + pick(below...)
			names, lines[name] = append(names, name), group
		}
	}
	text := strings.Join(rules, "\n") + "\n"
	storage, err := urlfilter.NewRuleStorage([]urlfilter.RuleList{&urlfilter.StringRuleList{ID: 1, RulesText: text}})
	if err != nil {
		t.Fatal(err)
	}
	defer storage.Close()
	engine := urlfilter.NewDNSEngine(storage)
	refused, wrong, documented := 0, 0, 0
	for i, got := range judge(t, text, names) {
		found, want := engine.Match(names[i])
		important := false
		if want {
			if rule, ok := found[0].(*urlfilter.NetworkRule); ok { // not that of a hosts file
				want, important = !rule.Whitelist, rule.IsOptionEnabled(urlfilter.OptionImportant)
			}
		}
		if want {
			refused++
		}
		switch {
		case got == want:
		case want && important:
			documented++ // it does not outrank an exception here
		default:
			if wrong++; wrong < 10 {
				t.Errorf("%s: refused %v, by AdGuard %v; lines:\n%s", names[i], got, want, strings.Join(lines[names[i]], "\n"))
			}
		}
	}
	t.Logf("%d decisions compared, %d refused; %d differences but %d documented", len(names), refused, wrong, documented)
	if refused < len(names)/20 || refused > len(names)*19/20 || documented > len(names)/20 {
		t.Errorf("of %d senders %d are refused, and %d differ as documented", len(names), refused, documented)
	}
}

// judge returns whether spamgate check refuses a sender at each of the names.
func judge(t *testing.T, list string, names []string) (refused []bool) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "spamgate")
	build := exec.Command("go", "build", "-o", program, "./cmd/spamgate")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for file, content := range map[string]string{
		"list.txt":    list,
		"config.toml": "[[list]]\nname = \"blocked\"\npath = \"list.txt\"\nformat = \"adblock\"\nallow_public_suffix = true\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := exec.Command(program, "check", "--all", "-")
	check.Dir, check.Stdin = dir, strings.NewReader("user@"+strings.Join(names, "\nuser@")+"\n")
	out, err := check.Output()
	said := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(said) != len(names) {
		t.Fatalf("%d answers for %d senders: %v", len(said), len(names), err)
	}
	for _, line := range said {
		refused = append(refused, strings.HasPrefix(line, "reject\t"))
	}
	return refused
}
