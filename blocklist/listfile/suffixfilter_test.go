package listfile

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/publicsuffix"
)

// suffixRules are the rules of publicsuffix.org's list, as the tests of
// golang.org/x/net have them: com, *.ck, !www.ck.
func suffixRules(tb testing.TB) (rules []string) {
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

// makeSuffixFile is what suffixes.bits is to hold.
func makeSuffixFile(rules []string) string {
	bits := make([]byte, suffixFilterBits/8)
	set := func(hash uint64) {
		i, j := suffixBits(hash)
		bits[i>>3] |= 1 << (i & 7)
		bits[j>>3] |= 1 << (j & 7)
	}
	for _, rule := range append(rules, tenants...) {
		parent, wildcard := strings.CutPrefix(rule, "*.")
		if wildcard {
			set(wildcardHash(parent))
			rule = parent
		}
		rule = strings.TrimPrefix(rule, "!")
		set(suffixHash(rule))
		// suffixOf asks for a child called x, which may have a rule of its own.
		if parent, ok := strings.CutPrefix(rule, "x."); ok {
			set(suffixHash(parent))
		}
	}
	return publicsuffix.List.String() + "\n" + string(bits)
}

// The file is that of the list in use.
func TestSuffixFilterIsCurrent(t *testing.T) {
	want := makeSuffixFile(suffixRules(t))
	if *update {
		if err := os.WriteFile("suffixes.bits", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if suffixFile != want {
		t.Error("suffixes.bits is of another version of publicsuffix.org's list, or of other tenants: make it anew with -update")
	}
	if suffixFilter == "" {
		t.Error("the filter is not used")
	}
}

// The filter hides no suffix: for each rule, and the names above, below and
// beside it, the answer is that of the list.
func TestSuffixFilterHidesNothing(t *testing.T) {
	names := append(suffixRules(t), tenants...)
	names = append(names, "", ".", "a.", ".com", "a..com", "unknown", "a.unknown", "xn--.com", "1.2.3.4")
	suffixes := 0
	for _, rule := range names {
		name := strings.TrimLeft(rule, "*.!")
		_, parent, _ := strings.Cut(name, ".")
		first, _, _ := strings.Cut(name, ".")
		for _, d := range []string{rule, name, parent, "x." + name, "a.b." + name, "sub." + parent, first + ".com", name + "." + name} {
			icann, private := suffixOf(d)
			if wantICANN, wantPrivate := plainSuffixOf(d); icann != wantICANN || private != wantPrivate {
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
		if maybeSuffix(fmt.Sprintf("d%d.%s", i, []string{"com", "co.uk", "mail.example.org"}[i%3])) {
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
	for name, of := range map[string]func(string) (bool, bool){"filter": suffixOf, "plain": plainSuffixOf} {
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				of(domains[i])
				i = (i + 1) % len(domains)
			}
		})
	}
}
