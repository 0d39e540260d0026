package listfile

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/suffix"
)

// The filter hides no suffix: for each rule, and the names above, below and
// beside it, the answer is that of the rules.
func TestSuffixFilterHidesNothing(t *testing.T) {
	names := append(suffix.Rules(), "", ".", "a.", ".com", "a..com", "unknown", "a.unknown", "xn--.com", "1.2.3.4")
	found := 0
	for _, rule := range names {
		name := strings.TrimLeft(rule, "*.!")
		_, parent, _ := strings.Cut(name, ".")
		first, _, _ := strings.Cut(name, ".")
		for _, d := range []string{rule, name, parent, "x." + name, "a.b." + name, "sub." + parent, first + ".com", name + "." + name} {
			icann, private := suffixOf(d)
			if wantICANN, wantPrivate := suffix.Of(d); icann != wantICANN || private != wantPrivate {
				t.Errorf("%q: %t, %t; want %t, %t", d, icann, private, wantICANN, wantPrivate)
			}
			if icann || private {
				found++
			}
		}
	}
	if found < 20_000 {
		t.Errorf("%d suffixes met", found)
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
	for name, choose := range map[string]func(string) (bool, bool){"filter": suffixOf, "rules": suffix.Of} {
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				choose(domains[i])
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
