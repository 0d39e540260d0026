package exports

import (
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"spamgate/internal/e2e/harness"
)

var update = flag.Bool("update", false, "write the table of docs/compare.md anew")

const comparePage = "../../../docs/compare.md"

// compareEntries are the entries of docs/compare.md.
var compareEntries = []string{
	"spam.example",
	"@corp.example",
	"*.hosting.example",
	"user@free.example",
	"winner@",
	"!good.spam.example",
	"<>",
	"bücher.example",
	"bulk.example # until=2099-12-31",
	`"two words"@free.example`,
}

// compareSenders are the senders of docs/compare.md.
var compareSenders = []string{
	"x@spam.example",
	"x@mail.spam.example",
	"x@good.spam.example",
	"x@notspam.example",
	"x@corp.example",
	"x@office.corp.example",
	"x@hosting.example",
	"x@customer.hosting.example",
	"user@free.example",
	"User@FREE.example",
	"user+news@free.example",
	"winner@any.example",
	"<>",
	"x@xn--bcher-kva.example",
	"x@bulk.example",
	`"two words"@free.example`,
}

// TestCompareDocument has each program decide by the ten entries of docs/compare.md, and
// compares with the table there.
func TestCompareDocument(t *testing.T) {
	l := newList(t, "subtree", []group{{compareEntries, compareSenders}})
	programs := []struct {
		name    string
		refuses func(sender string) (refused, asked bool)
	}{
		{"spamgate", func(s string) (refused, asked bool) { return l.gate[s] == "reject", true }},
		{"Postfix", l.inPostfix(t)},
		{"rspamd", l.inRspamd(t)},
		{"rbldnsd", l.inRBLDNSD(t)},
	}
	table := fmt.Sprintf("%-27s", "sender")
	for _, p := range programs {
		table += fmt.Sprintf("%-9s", p.name)
	}
	table = strings.TrimRight(table, " ") + "\n"
	for _, s := range compareSenders {
		row := fmt.Sprintf("%-27s", s)
		for _, p := range programs {
			text := "-"
			if refused, asked := p.refuses(s); refused {
				text = "refused"
			} else if asked {
				text = "taken"
			}
			row += fmt.Sprintf("%-9s", text)
		}
		table += strings.TrimRight(row, " ") + "\n"
	}
	page, err := os.ReadFile(comparePage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), "```text\nsender ")
	old, after, found := strings.Cut(rest, "```")
	switch {
	case !found:
		t.Error("the page has no table that begins with sender")
	case *update:
		harness.WriteFile(t, comparePage, before+"```text\n"+table+"```"+after)
	case "sender "+old != table:
		t.Errorf("the page has\nsender %s\nwant\n%s", old, table)
	}
	if entries := strings.Join(compareEntries, "\n") + "\n"; !strings.Contains(string(page), entries) {
		t.Errorf("the page has not the entries\n%s", entries)
	}
}

// inPostfix exports the list for Postfix, and returns what a Postfix with it does.
func (l *list) inPostfix(t *testing.T) func(sender string) (refused, asked bool) {
	table, _ := l.export(t, "postfix")
	return startPostfix(t, l.dir, table, "smtpd_access_maps").refuses
}

// inRspamd exports the list for rspamd, and returns what an rspamd with it does.
func (l *list) inRspamd(t *testing.T) func(sender string) (refused, asked bool) {
	file, _ := l.export(t, "rspamd")
	return startRspamd(t, l.dir, file, exportedMap).refuses
}

// inRBLDNSD exports the list for rbldnsd, and returns what an rbldnsd with it answers.
func (l *list) inRBLDNSD(t *testing.T) func(sender string) (refused, asked bool) {
	file, _ := l.export(t, "rbldnsd")
	return startRBLDNSD(t, file).refuses
}

// An rbldnsd is a running rbldnsd with the zone bl.test.
type rbldnsd struct{ *dnsServer }

// startRBLDNSD starts an rbldnsd with a dnset, which ends with the test.
func startRBLDNSD(t *testing.T, file string, flags ...string) rbldnsd {
	t.Helper()
	addr := harness.FreeAddr(t)
	host, port, _ := net.SplitHostPort(addr)
	return rbldnsd{startDNS(t, host, port, harness.RBLDNSD(t, addr, append(flags, "bl.test:dnset:"+file)...))}
}

// refuses reports whether the domain of a sender is in the zone.
func (r rbldnsd) refuses(sender string) (refused, asked bool) {
	domain := domainOf(sender)
	if domain == "" {
		return false, false
	}
	code, answers := r.ask(domain + ".bl.test.")
	return code == dnsmessage.RCodeSuccess && answers > 0, true
}
