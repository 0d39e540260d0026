package listfile

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/publicsuffix"
)

// suffixRulesInUse returns the rules of publicsuffix.org's list, as the tests of
// golang.org/x/net have them: com, *.ck, !www.ck.
func suffixRulesInUse(tb testing.TB) (rules []string) {
	tb.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/net").Output()
	if err != nil {
		tb.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "publicsuffix", "table_test.go"), nil, 0)
	if err != nil {
		tb.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "rules" {
			return true
		}
		for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
			rule, err := strconv.Unquote(e.(*ast.BasicLit).Value)
			if err != nil {
				tb.Fatal(err)
			}
			rules = append(rules, rule)
		}
		return false
	})
	if len(rules) < 9000 {
		tb.Fatalf("%d rules found", len(rules))
	}
	return rules
}

// suffixHead is what suffixes.txt begins with.
const suffixHead = `# The rules of the Public Suffix List, and the names directly above wildcard rules.
# Source: golang.org/x/net/publicsuffix,
# %s.
# Licence: Mozilla Public License 2.0, https://mozilla.org/MPL/2.0/
# Made by: go test ./blocklist/listfile -run=SuffixesAreCurrent -update
`

// makeSuffixFile returns what suffixes.txt should hold.
func makeSuffixFile(rules []string) string {
	icann, private := map[string]bool{}, map[string]bool{}
	add := func(rule, d string) {
		switch isICANN, isPrivate := listedSuffix(d); {
		case isICANN:
			icann[rule] = true
		case isPrivate:
			private[rule] = true
		}
	}
	for _, rule := range rules {
		name := strings.TrimLeft(rule, "*.!")
		_, parent, _ := strings.Cut(name, ".")
		switch rule[0] {
		case '*':
			add(rule, "any."+name)
		case '!':
			add(rule, "any."+parent)
		}
		for _, d := range []string{name, parent} {
			if d != "" && !slices.Contains(tenants, d) {
				add(d, d)
			}
		}
	}
	file := fmt.Sprintf(suffixHead, publicsuffix.List)
	for _, section := range []map[string]bool{icann, private} {
		file += "\n" + strings.Join(slices.Sorted(maps.Keys(section)), "\n") + "\n"
	}
	return file
}

// listedSuffix is suffixOf by golang.org/x/net/publicsuffix.
func listedSuffix(d string) (icann, private bool) {
	suffix, icann := publicsuffix.PublicSuffix("x." + d)
	if len(suffix) < len(d) {
		return false, slices.Contains(tenants, d)
	}
	return icann, !icann
}

// The file is that of the list in use.
func TestSuffixesAreCurrent(t *testing.T) {
	want := makeSuffixFile(suffixRulesInUse(t))
	if *update {
		if err := os.WriteFile("suffixes.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if suffixFile != want {
		t.Error("suffixes.txt is of another version of publicsuffix.org's list: make it anew with -update")
	}
}

// The filter hides no suffix: for each rule, and the names above, below and
// beside it, the answer is that of the list.
func TestSuffixFilterHidesNothing(t *testing.T) {
	names := append(suffixRulesInUse(t), tenants...)
	names = append(names, "", ".", "a.", ".com", "a..com", "unknown", "a.unknown", "xn--.com", "1.2.3.4")
	suffixes := 0
	for _, rule := range names {
		name := strings.TrimLeft(rule, "*.!")
		_, parent, _ := strings.Cut(name, ".")
		first, _, _ := strings.Cut(name, ".")
		for _, d := range []string{rule, name, parent, "x." + name, "a.b." + name, "sub." + parent, first + ".com", name + "." + name} {
			icann, private := suffixOf(d)
			if wantICANN, wantPrivate := listedSuffix(d); icann != wantICANN || private != wantPrivate {
				t.Errorf("%q: %t, %t; want %t, %t", d, icann, private, wantICANN, wantPrivate)
			}
			if icann || private {
				suffixes++
			}
		}
	}
	if suffixes < 20_000 {
		t.Errorf("%d suffixes met", suffixes)
	}
}

// Hardly any other domain passes the filter: else it would be of no use.
func TestSuffixFilterIsSelective(t *testing.T) {
	passed, n := 0, 100_000
	for i := range n {
		if suffixes().maybe(fmt.Sprintf("d%d.%s", i, []string{"com", "co.uk", "mail.example.org"}[i%3])) {
			passed++
		}
	}
	if passed > n/40 {
		t.Errorf("%d of %d domains passed", passed, n)
	}
}

// BenchmarkSuffixOf compares a look-up behind the filter with one in the list.
func BenchmarkSuffixOf(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	domains := make([]string, 1<<12)
	for i := range domains {
		domains[i] = fmt.Sprintf("offers-%d.%s", r.Uint32(), []string{"com", "net", "de", "example.co.uk"}[i%4])
	}
	for name, of := range map[string]func(string) (bool, bool){"filter": suffixOf, "rules": suffixes().of, "x/net": listedSuffix} {
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				of(domains[i])
				i = (i + 1) % len(domains)
			}
		})
	}
}

// The package links neither a network nor a web client: x/net/publicsuffix would
// bring both.
func TestLinksNoNetwork(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	for _, p := range []string{"net", "net/http", "crypto/tls", "golang.org/x/net/publicsuffix"} {
		if slices.Contains(deps, p) {
			t.Errorf("%s is linked", p)
		}
	}
}
