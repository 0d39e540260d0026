package addresses

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// The tests send header fields of testdata/headers.txt, which a mail server may complete
// or rewrite into a listed sender.

// formLists are the lists of the gates. No form may arrive with a sender in them.
var formLists = map[string]string{"blocked.txt": `listed.example
xn--bcher-kva.example
@[192.0.2.66]
spammer@
boss@mx.example.org
chief@example.org
`}

// arrivesListed finds a listed sender in a field as a server has stored it. It knows
// only comments and space of the syntax, so it finds too much rather than too little.
var arrivesListed = regexp.MustCompile(`@([a-z0-9-]+\.)*listed\.example` +
	`|@(bücher|xn--bcher-kva)\.example` +
	`|@\[192\.0\.2\.66\]` +
	`|(^|[^a-z0-9.%!+_-])spammer(\+[a-z]+)?"?@` +
	`|(^|[^a-z0-9.%!+_-])boss"?@mx\.example\.org` +
	`|(^|[^a-z0-9.%!+_-])chief"?@example\.org`)

// postfixHeaderLimit is the size after which Postfix cuts a field off.
const postfixHeaderLimit = 102_400

// rewrittenForms returns the forms of testdata/headers.txt, or every fourth of them with
// -short, and some that are too long for a file: Postfix splits lines of more than 2,048
// bytes, and cuts fields off after postfixHeaderLimit or 10,240 words.
func rewrittenForms(t testing.TB) []string {
	t.Helper()
	all := forms(t, "headers.txt")
	for _, n := range []int{990, 2040, 2050, 4090, 102_380, 103_000} {
		all = append(all,
			"From: "+strings.Repeat("x", n)+" <spam%listed.example>",
			"From: ("+strings.Repeat("x", n)+") listed.example!spam")
	}
	for _, n := range []int{100, 900, 5_000, 11_000} {
		all = append(all,
			"From: "+strings.Repeat("x ", n)+"<spam%listed.example>",
			"From: "+strings.Repeat("a@clean.example,\r\n ", n)+"spammer")
	}
	var some []string
	for i := 0; i < len(all); i += harness.IfShort(1, 4) {
		some = append(some, all[i])
	}
	return some
}

// shortForms returns how many of the forms are not too long for a gate: by default it takes no
// checked field of more than 16,384 bytes, nor one with a line of more than 998.
func shortForms(forms []string) int {
	isLong := func(form string) bool {
		return len(form) > 16<<10 || slices.ContainsFunc(strings.Split(form, "\r\n"), func(line string) bool { return len(line) > 998 })
	}
	n := 0
	for _, form := range forms {
		if !isLong(form) {
			n++
		}
	}
	return n
}

var fieldNoise = regexp.MustCompile(`\([^()]*\)|\s+`)

// listedIn returns the part of the fields that is a listed sender, or "".
func listedIn(fields []string) string {
	for _, field := range fields {
		_, value, _ := strings.Cut(field, ":")
		if found := arrivesListed.FindString(fieldNoise.ReplaceAllString(strings.ToLower(value), "")); found != "" {
			return found
		}
	}
	return ""
}

var formID = regexp.MustCompile(`(?m)^X-Form: (\d+)$`)

// senderFields returns the fields of a header that name a sender, with their folds and
// with lines that end in LF.
func senderFields(header string) []string {
	var fields []string
	for line := range strings.Lines(header) {
		if line[0] == ' ' || line[0] == '\t' {
			if len(fields) > 0 {
				fields[len(fields)-1] += line
			}
			continue
		}
		fields = append(fields, line)
	}
	var senders []string
	for _, field := range fields {
		name, _, _ := strings.Cut(field, ":")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "from", "sender", "reply-to":
			senders = append(senders, field)
		}
	}
	return senders
}

// formHeader returns the sender fields of a form's message: the form, and a From field
// if the form is another field.
func formHeader(form string) string {
	header := form + "\r\n"
	if !strings.HasPrefix(strings.ToLower(form), "from") {
		header = "From: Ann <a@clean.example>\r\n" + header
	}
	return header
}

// storedHeaders returns the sender fields of messages, by the form's number.
func storedHeaders(t testing.TB, messages []string) map[int][]string {
	t.Helper()
	stored := make(map[int][]string)
	for _, m := range messages {
		header, _, _ := strings.Cut(m, "\n\n")
		header += "\n"
		number := formID.FindStringSubmatch(header)
		if number == nil {
			t.Fatalf("a message without the number of its form: %.500q", m)
		}
		n, _ := strconv.Atoi(number[1])
		if stored[n] != nil {
			t.Errorf("form %d arrived twice", n)
		}
		stored[n] = senderFields(header)
	}
	return stored
}

// formsPerConnection is well below the number of refusals that ends a session.
const formsPerConnection = 8

// A headerSender sends forms to a server or a gate.
type headerSender struct {
	addr    string
	proxy   string // PROXY header, or ""
	rcpt    string
	run     string // goes into the messages
	hangsUp bool   // the server may close the connection after a long line
}

// send sends each form in its own message, and returns how many were accepted.
func (h headerSender) send(t testing.TB, forms []string) (taken int) {
	t.Helper()
	var c *harness.Client
	defer func() { c.Close() }()
	sent := formsPerConnection
	for n, form := range forms {
		if sent == formsPerConnection {
			if c != nil {
				c.Close()
			}
			c, sent = connectAs(t, h.addr, h.proxy), 0
		}
		sent++
		c.Want(t, "MAIL FROM:<a@clean.example>", "250")
		c.Want(t, "RCPT TO:<"+h.rcpt+">", "250")
		c.Want(t, "DATA", "354")
		fmt.Fprintf(c, "X-Run: %s\r\nX-Form: %d\r\n%sSubject: form\r\n\r\nHello.\r\n.\r\n", h.run, n, formHeader(form))
		reply, err := c.Reply()
		if h.hangsUp && len(form) > longForm {
			sent = formsPerConnection
		} else if err != nil {
			t.Fatalf("%s: %v", brief(form), err)
		}
		switch {
		case strings.HasPrefix(reply, "2"):
			taken++
		case strings.HasPrefix(reply, "4"):
			t.Errorf("%s was put off: %s", brief(form), reply)
		}
	}
	return taken
}

// longForm is a length that every server takes in a line. The forms of the file are much
// shorter.
const longForm = 500

// connectAs connects, sends a PROXY header if there is one, and says EHLO.
func connectAs(t testing.TB, addr, proxy string) *harness.Client {
	t.Helper()
	c, err := harness.Connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	io.WriteString(c, proxy)
	if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, "220") {
		t.Fatalf("greeting %q, %v", reply, err)
	}
	c.Want(t, "EHLO client.example", "250")
	return c
}

// arrivedListed describes the forms that arrived with a listed sender.
func arrivedListed(stored map[int][]string, forms []string) []string {
	var listed []string
	for n, fields := range stored {
		if found := listedIn(fields); found != "" {
			listed = append(listed, fmt.Sprintf("%s arrived as %s: %s", brief(forms[n]), brief(strings.Join(fields, "")), found))
		}
	}
	return listed
}

var spaceBeforeColon = regexp.MustCompile(`(?m)^([A-Za-z-]+)[ \t]+:`)

// arrivedChanged describes the forms whose fields a server has changed or removed. Space
// before the colon does not count, since Postfix removes it from every header.
func arrivedChanged(stored map[int][]string, forms []string) []string {
	var changed []string
	for n, fields := range stored {
		if len(forms[n]) > postfixHeaderLimit {
			continue
		}
		want := strings.ReplaceAll(formHeader(forms[n]), "\r\n", "\n")
		want = spaceBeforeColon.ReplaceAllString(want, "$1:")
		if got := spaceBeforeColon.ReplaceAllString(strings.Join(fields, ""), "$1:"); got != want {
			changed = append(changed, fmt.Sprintf("%s arrived as %s", brief(want), brief(got)))
		}
	}
	return changed
}

// passedForms lists the forms that arrived.
func passedForms(stored map[int][]string, forms []string) string {
	var passed []string
	for _, n := range slices.Sorted(maps.Keys(stored)) {
		passed = append(passed, brief(forms[n]))
	}
	return strings.Join(passed, ", ")
}

// brief quotes a text without its middle.
func brief(s string) string {
	if len(s) > 400 {
		s = s[:100] + "…" + s[len(s)-100:]
	}
	return strconv.Quote(s)
}
