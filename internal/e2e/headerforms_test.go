package e2e

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
	"spamgate/smtpfilter/header"
)

// headerForms are the From fields of testdata/headerforms.txt.
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

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A server that completes and rewrites what the From field holds makes addresses of
// it. Postfix does so for clients that it takes for its own, and it is sent every
// form directly first. Then what it has made is listed, and the gate gets the forms:
// none passes.
func TestHeaderFormsAsPostfixReadsThem(t *testing.T) {
	t.Parallel()
	p := startPostfix(t, everywhere, "local_header_rewrite_clients = static:all", "append_dot_mydomain = yes")
	forms := headerForms(t)
	c, err := dial(p.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, form := range forms {
		if reply := c.mustSend(t, "a@clean.example", mailbox, formLetter(form, i)); reply[0] != '2' {
			t.Fatalf("%q: %q", form, reply)
		}
	}
	made := arrivedFrom(t, p, len(forms))
	t.Run("addresses", func(t *testing.T) {
		refuseMade(t, p, forms, made, func(a sender.Address) string {
			switch {
			case a.Domain() == "clean.example", a.Local()[0] == '!': // would be an exception
				return ""
			case a.Local()[0] != '"':
				return a.String()
			case strings.HasSuffix(a.Domain(), "example.org"): // the server's own, and no list names the local part
				return ""
			}
			return "@" + a.Domain()
		})
	})
	t.Run("the server's own domain", func(t *testing.T) {
		var names []string // without the words that may be a name beside an address
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

// refuseMade lists the entries for the addresses that Postfix has made of forms, and
// wants a gate to refuse those forms.
func refuseMade(t *testing.T, p *postfix, forms []string, made map[int][]sender.Address, entry func(sender.Address) string) {
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
	g := startGate(t, setup{nextHop: "smtp://" + p.addr, files: map[string]string{"blocked.txt": strings.Join(slices.Compact(list), "\n") + "\n"}})
	c, err := dial(g.addr, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, address := range listed {
		if reply := c.mustSend(t, "a@clean.example", mailbox, formLetter(forms[i], i)); !strings.HasPrefix(reply, "550 5.7.1 <") {
			t.Errorf("From: %q is %s to Postfix, which is listed; the gate said %q", forms[i], address, reply)
		}
	}
	t.Logf("%d of %d forms", len(listed), len(forms))
}

func formLetter(form string, number int) string {
	return fmt.Sprintf("From: %s\r\nSubject: form %d\r\n\r\nHello.\r\n", form, number)
}

var formNumber = regexp.MustCompile(`(?m)^Subject: form (\d+)$`)

// arrivedFrom waits for so many messages in the mailbox and returns the addresses
// in their From fields, by the form's number.
func arrivedFrom(t *testing.T, p *postfix, n int) map[int][]sender.Address {
	t.Helper()
	var files []string
	p.poll("mail", func() bool {
		files, _ = filepath.Glob(filepath.Join(p.dir, "mail", "you", "new", "*"))
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
