package doors

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"spamgate/internal/e2e/harness"
)

// names is how many names TestRBLDNSD asks for: 2,000, and 10,000 with SPAMGATE_E2E_FULL=1.
func names() int {
	if os.Getenv("SPAMGATE_E2E_FULL") == "1" {
		return 10000
	}
	return 2000
}

// TestRBLDNSD asks the gate and rbldnsd, which serves what the gate has exported of the same
// list, for the same names: both list the same, with the same address.
func TestRBLDNSD(t *testing.T) {
	t.Parallel()
	harness.Program(t, "rbldnsd", "rbldnsd")
	random := rand.New(rand.NewPCG(15, 1))
	for _, match := range []string{"subtree", "exact"} {
		lines, asked := dnsNames(random, names()/2)
		g := startDoors(t, harness.Setup{
			Listen: harness.NoListener, Tables: "[[dns_server]]\nname = \"dns\"\naddr = \"127.0.0.1:0\"\nzone = \"bl.example.org\"\n",
			Lists: harness.BlockedLists + "match = \"" + match + "\"\n",
			Files: map[string]string{"blocked.txt": lines},
		})
		zone := filepath.Join(openDir(t), "zone")
		g.Command(t, 0, "lists", "export", "--format", "rbldnsd", "--out", zone)
		if err := os.Chmod(zone, 0o644); err != nil {
			t.Fatal(err)
		}
		gate := doorAddr(g, "dns")
		other, _ := startRBLDNSD(t, zone)
		listed, differ := 0, 0
		for _, name := range asked {
			a, b := addresses(t, gate, name), addresses(t, other, name)
			if a != "" {
				listed++
			}
			if a != b {
				if differ++; differ < 10 {
					t.Errorf("%s, match %s: the gate says %q, rbldnsd %q", name, match, a, b)
				}
			}
		}
		if listed < len(asked)/10 || listed > len(asked)*9/10 {
			t.Errorf("%d of %d names are listed", listed, len(asked))
		}
		t.Logf("match %s: %d names, %d listed, %d differences", match, len(asked), listed, differ)
	}
}

// dnsNames returns a random list of domains, with exceptions, and n names of which many are
// in it or nearly.
func dnsNames(random *rand.Rand, n int) (list string, names []string) {
	pick := func(s ...string) string { return s[random.IntN(len(s))] }
	var lines strings.Builder
	for i := 0; len(names) < n; i++ {
		top := fmt.Sprintf("d%d.%s", i, pick("example", "test", "co.uk", "org"))
		level := []string{top, "a." + top, "b.a." + top, "c.b.a." + top}
		for range 1 + random.IntN(4) {
			fmt.Fprintln(&lines, pick("", "", "", "!")+pick("", "", ".", "*.", "@")+pick(level...)+pick("", " # a reason"))
		}
		for range 10 {
			name := pick("", "", "x.", "y.x.") + pick(level...)
			names = append(names, pick(name, strings.ToUpper(name)))
		}
	}
	return lines.String(), names[:n]
}

// startRBLDNSD starts an rbldnsd with a zone file, which ends with the test, and returns its
// address and its process.
func startRBLDNSD(t testing.TB, file string) (addr string, process *os.Process) {
	t.Helper()
	addr = harness.FreeAddr(t)
	cmd := harness.RBLDNSD(t, addr, "bl.example.org:dnset:"+file)
	out := harness.NewOutput(t, "rbldnsd")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	harness.WaitFor(t, "rbldnsd to answer", func() bool {
		_, err := dns.Exchange(new(dns.Msg).SetQuestion("x.bl.example.org.", dns.TypeA), addr)
		return err == nil
	})
	return addr, cmd.Process
}

// addresses returns the addresses of a name below the zone; "" if it is not listed.
func addresses(t *testing.T, server, name string) string {
	t.Helper()
	answer, err := askDNS("udp", server, name+".bl.example.org")
	code, listed, _ := strings.Cut(answer, " ")
	if err != nil || code != "NOERROR" && code != "NXDOMAIN" {
		t.Fatalf("%s: %q, %v", name, answer, err)
	}
	return listed
}
