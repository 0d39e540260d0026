package suffix

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/publicsuffix"
)

var update = flag.Bool("update", false, "make suffixes.txt anew")

// rulesInUse returns the rules of publicsuffix.org's list, as the tests of
// golang.org/x/net have them: com, *.ck, !www.ck.
func rulesInUse(tb testing.TB) (rules []string) {
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

// fileHead is what suffixes.txt begins with.
const fileHead = `# The rules of the Public Suffix List, and the names directly above wildcard rules.
# Source: golang.org/x/net/publicsuffix,
# %s.
# Licence: Mozilla Public License 2.0, https://mozilla.org/MPL/2.0/
# Made by: go test ./internal/suffix -run=IsCurrent -update
`

// makeFile returns what suffixes.txt should hold.
func makeFile(rules []string) string {
	icann, private := map[string]bool{}, map[string]bool{}
	add := func(rule, d string) {
		switch isICANN, isPrivate := listed(d); {
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
	file := fmt.Sprintf(fileHead, publicsuffix.List)
	for _, section := range []map[string]bool{icann, private} {
		file += "\n" + strings.Join(slices.Sorted(maps.Keys(section)), "\n") + "\n"
	}
	return file
}

// listed implements Of with golang.org/x/net/publicsuffix.
func listed(d string) (icann, private bool) {
	suffix, icann := publicsuffix.PublicSuffix("x." + d)
	if len(suffix) < len(d) {
		return false, slices.Contains(tenants, d)
	}
	return icann, !icann
}

// The file is that of the list in use.
func TestFileIsCurrent(t *testing.T) {
	want := makeFile(rulesInUse(t))
	if *update {
		if err := os.WriteFile("suffixes.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if file != want {
		t.Error("suffixes.txt is of another version of publicsuffix.org's list: make it anew with -update")
	}
}

// TestOf compares Of and Organization with golang.org/x/net/publicsuffix, for each rule
// and the names above, below and beside it.
func TestOf(t *testing.T) {
	names := append(rulesInUse(t), tenants...)
	names = append(names, "", ".", "a.", ".com", "a..com", "unknown", "a.unknown", "xn--.com")
	for _, rule := range names {
		name := strings.TrimLeft(rule, "*.!")
		_, parent, _ := strings.Cut(name, ".")
		first, _, _ := strings.Cut(name, ".")
		for _, d := range []string{rule, name, parent, "x." + name, "a.b." + name, "sub." + parent, first + ".com", name + "." + name} {
			icann, private := Of(d)
			if wantICANN, wantPrivate := listed(d); icann != wantICANN || private != wantPrivate {
				t.Errorf("%q: %t, %t; want %t, %t", d, icann, private, wantICANN, wantPrivate)
			}
			checkOrganization(t, d)
		}
	}
}

// checkOrganization compares Organization with golang.org/x/net/publicsuffix. Names above
// wildcard rules and those of tenants are organizations there, and suffixes here.
func checkOrganization(t *testing.T, d string) {
	t.Helper()
	want, _ := publicsuffix.EffectiveTLDPlusOne(d)
	if strings.HasPrefix(d, ".") || strings.Contains(d, "..") || strings.HasSuffix(d, ".") || strings.ContainsAny(d, "*!") {
		return // not a domain
	}
	for _, d := range []string{d, want} {
		if icann, private := Of(d); icann || private {
			if got := Organization(d); got != "" {
				t.Errorf("Organization(%q) = %q: it is a suffix", d, got)
			}
			return
		}
	}
	if got := Organization(d); got != want {
		t.Errorf("Organization(%q) = %q, want %q", d, got, want)
	}
}
