package e2e

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The tests of this file send header fields that a mail server may complete or
// rewrite into a listed sender: testdata/headers.txt.

// formLists are the entries that no form may arrive with.
var formLists = map[string]string{"blocked.txt": `listed.example
xn--bcher-kva.example
@[192.0.2.66]
spammer@
boss@mx.example.org
chief@example.org
`}

// arrivesListed finds a listed sender in a field as a server has stored it. It knows
// nothing of the syntax but comments and space, and so finds too much sooner than too
// little.
var arrivesListed = regexp.MustCompile(`@([a-z0-9-]+\.)*listed\.example` +
	`|@(bücher|xn--bcher-kva)\.example` +
	`|@\[192\.0\.2\.66\]` +
	`|(^|[^a-z0-9.%!+_-])spammer(\+[a-z]+)?"?@` +
	`|(^|[^a-z0-9.%!+_-])boss"?@mx\.example\.org` +
	`|(^|[^a-z0-9.%!+_-])chief"?@example\.org`)

// postfixHeaderLimit is the size from which on Postfix cuts a field off.
const postfixHeaderLimit = 102_400

// rewrittenForms are the forms of testdata/headers.txt, and some that are too long for
// a file: Postfix splits lines of more than 2,048 bytes, and cuts fields off after
// postfixHeaderLimit or 10,240 words. With -short it is every fourth of them.
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
	for i := 0; i < len(all); i += short(1, 4) {
		some = append(some, all[i])
	}
	return some
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

// senderFields returns the fields of a header that name a sender, with folds as they
// are and lines that end in LF.
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

// formHeader is the part of a form's header that has senders: the form, and a From
// where it is another field.
func formHeader(form string) string {
	header := form + "\r\n"
	if !strings.HasPrefix(strings.ToLower(form), "from") {
		header = "From: Ann <a@clean.example>\r\n" + header
	}
	return header
}

// storedHeaders returns the senders' fields of messages, by the number of the form.
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

// formsPerConnection is well below the refusals that a server puts up with.
const formsPerConnection = 8

// headerSender sends forms to a server or a gate.
type headerSender struct {
	addr    string
	proxy   string // line of the PROXY protocol that each connection begins with, or ""
	rcpt    string
	run     string // written into the messages
	hangsUp bool   // the server may close the connection after a line that is too long
}

// send sends all forms, each in a message of its own, and returns how many were
// taken.
func (h headerSender) send(t testing.TB, forms []string) (taken int) {
	t.Helper()
	var c *client
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
		c.want(t, "MAIL FROM:<a@clean.example>", "250")
		c.want(t, "RCPT TO:<"+h.rcpt+">", "250")
		c.want(t, "DATA", "354")
		fmt.Fprintf(c, "X-Run: %s\r\nX-Form: %d\r\n%sSubject: form\r\n\r\nHello.\r\n.\r\n", h.run, n, formHeader(form))
		reply, err := c.reply()
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

// longForm is a size that servers take in a line, and that the forms of the file are
// far below.
const longForm = 500

// connectAs connects, perhaps with a line of the PROXY protocol, and says EHLO.
func connectAs(t testing.TB, addr, proxy string) *client {
	t.Helper()
	c, err := connect(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	io.WriteString(c, proxy)
	if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "220") {
		t.Fatalf("greeting %q, %v", reply, err)
	}
	c.want(t, "EHLO client.example", "250")
	return c
}

// mailOf waits for n messages in a mailbox of Postfix and returns all of them.
func (p *postfix) mailOf(user string, n int) []string {
	p.t.Helper()
	var files []string
	p.poll(fmt.Sprintf("%d messages for %s", n, user), func() bool {
		files, _ = filepath.Glob(filepath.Join(p.dir, "mail", user, "new", "*"))
		return len(files) >= n
	})
	var messages []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			p.t.Fatal(err)
		}
		messages = append(messages, string(text))
	}
	return messages
}

// arrivedListed returns the forms that arrived with a listed sender.
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

// arrivedChanged returns the forms whose fields a server has changed or removed, but
// for space before the colon, which Postfix removes from every header.
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

// passedForms returns the forms that arrived.
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
