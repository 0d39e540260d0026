package addresses

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/internal/e2e/harness"
	"spamgate/smtpfilter/header"
)

// headerForms returns the From fields of testdata/headerforms.txt.
func headerForms(t testing.TB) []string {
	t.Helper()
	fold := strings.NewReplacer(`\r\n `, "\r\n ", `\r\n\t`, "\r\n\t")
	var all []string
	for i, line := range strings.Split(strings.TrimSpace(readFile(t, "testdata/headerforms.txt")), "\n") {
		if line[0] != '#' {
			all = append(all, strings.ReplaceAll(fold.Replace(line), "N", strconv.Itoa(i)))
		}
	}
	return all
}

// readFile returns the contents of a file.
func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHeaderFormsAsPostfixReadsThem sends Postfix every form of a From field directly,
// as a client whose headers it completes and rewrites. Then the addresses that Postfix
// has made are listed, and a gate gets the forms: none passes.
func TestHeaderFormsAsPostfixReadsThem(t *testing.T) {
	t.Parallel()
	p := harness.StartPostfix(t, harness.Everywhere, "local_header_rewrite_clients = static:all", "append_dot_mydomain = yes")
	forms := headerForms(t)
	c, err := harness.Dial(p.Addr, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, form := range forms {
		if reply := c.MustSend(t, "a@clean.example", harness.Mailbox, formLetter(form, i)); reply[0] != '2' {
			t.Fatalf("%q: %q", form, reply)
		}
	}
	made := arrivedFrom(t, p, len(forms))
	t.Run("addresses", func(t *testing.T) {
		refuseMade(t, p, forms, made, func(a sender.Address) string {
			switch {
			case a.Domain() == "clean.example", a.Local()[0] == '!': // it would be an exception
				return ""
			case a.Local()[0] != '"':
				return a.String()
			case strings.HasSuffix(a.Domain(), "example.org"): // the server's domain, and no list has the local part
				return ""
			}
			return "@" + a.Domain()
		})
	})
	t.Run("the server's own domain", func(t *testing.T) {
		var names []string // without words that may be a display name
		for _, form := range forms {
			if strings.Contains(form, "@clean.example") {
				form = "nobody"
			}
			names = append(names, form)
		}
		refuseMade(t, p, names, made, func(a sender.Address) string {
			if !strings.HasSuffix(a.Domain(), "example.org") {
				return ""
			}
			return "example.org"
		})
	})
}

// refuseMade lists the addresses that Postfix has made of forms, and checks that a gate
// refuses these forms.
func refuseMade(t *testing.T, p *harness.Postfix, forms []string, made map[int][]sender.Address, entry func(sender.Address) string) {
	listed := map[int]string{}
	var list []string
	for i, addresses := range made {
		for _, a := range addresses {
			if e := entry(a); e != "" && forms[i] != "nobody" {
				listed[i] = a.String()
				list = append(list, e)
			}
		}
	}
	if len(listed) < len(forms)/4 {
		t.Errorf("Postfix made addresses of %d of %d forms: the test does not test much", len(listed), len(forms))
	}
	slices.Sort(list)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + p.Addr, Files: map[string]string{"blocked.txt": strings.Join(slices.Compact(list), "\n") + "\n"}})
	c, err := harness.Dial(g.Addr, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, address := range listed {
		if reply := c.MustSend(t, "a@clean.example", harness.Mailbox, formLetter(forms[i], i)); !strings.HasPrefix(reply, "550 5.7.1 <") {
			t.Errorf("From: %q is %s to Postfix, which is listed; the gate said %q", forms[i], address, reply)
		}
	}
	t.Logf("%d of %d forms", len(listed), len(forms))
}

func formLetter(form string, number int) string {
	return fmt.Sprintf("From: %s\r\nSubject: form %d\r\n\r\nHello.\r\n", form, number)
}

var formNumber = regexp.MustCompile(`(?m)^Subject: form (\d+)$`)

// arrivedFrom waits for n messages in the mailbox and returns the addresses in their
// From fields, by the form's number.
func arrivedFrom(t *testing.T, p *harness.Postfix, n int) map[int][]sender.Address {
	t.Helper()
	var files []string
	harness.WaitFor(p.T, "mail", func() bool {
		files, _ = filepath.Glob(filepath.Join(p.Dir, "mail", "you", "new", "*"))
		return len(files) == n
	})
	made := map[int][]sender.Address{}
	for _, file := range files {
		text := readFile(t, file)
		m := formNumber.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no form: %q", text)
		}
		number, _ := strconv.Atoi(m[1])
		section, _, _ := strings.Cut(text, "\n\n")
		for _, s := range header.Senders([]byte(section), []string{"From"}).Senders {
			if a, err := sender.Parse(s.Address); err == nil {
				made[number] = append(made[number], a)
			}
		}
	}
	return made
}
