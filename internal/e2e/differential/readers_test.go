package differential

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// readers are programs that say whom messages are from.
type readers struct {
	t       testing.TB
	lines   []func(line string) string // Python and nodemailer
	dovecot harness.Dovecot
}

// seen are the addresses in the fields that name a sender, by reader.
type seen map[string][]string

func startReaders(t testing.TB) *readers {
	t.Helper()
	module := harness.FetchedFile(t, "nodemailer/node_modules/nodemailer")
	return &readers{t: t, dovecot: harness.StartDovecot(t, harness.DovecotLMTP, "lmtp"), lines: []func(string) string{
		harness.StartLines(t, "python", exec.Command(harness.Program(t, "python3", "python3"), "testdata/readers.py")),
		harness.StartLines(t, "node", exec.Command(harness.Program(t, "node", "nodejs"), "testdata/readers.js", module)),
	}}
}

// read returns what the readers see in each message, with lines that end in LF as in a mailbox.
func (r *readers) read(messages []string) []seen {
	r.t.Helper()
	messages = slices.Clone(messages)
	all := make([]seen, len(messages))
	for i, m := range messages {
		messages[i] = strings.ReplaceAll(m, "\r\n", "\n")
	}
	for i, m := range messages {
		all[i] = seen{"Go's net/mail": netMail(m)}
		for _, ask := range r.lines {
			if err := json.Unmarshal([]byte(ask(base64.StdEncoding.EncodeToString([]byte(m)))), &all[i]); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	for i, found := range r.envelopes(messages) {
		all[i]["Dovecot's ENVELOPE"] = found
	}
	return all
}

// senderFields are the fields that the gate checks.
var senderFields = []string{"From", "Sender", "Reply-To"}

// netMail returns what Go's net/mail sees.
func netMail(message string) []string {
	m, err := mail.ReadMessage(strings.NewReader(message))
	if err != nil {
		return nil
	}
	var found []string
	for _, field := range senderFields {
		for _, value := range m.Header[field] {
			list, _ := mail.ParseAddressList(value)
			for _, a := range list {
				found = append(found, a.Address)
			}
		}
	}
	return found
}

// envelopes returns what Dovecot's IMAP shows as the senders of each message.
func (r *readers) envelopes(messages []string) [][]string {
	r.t.Helper()
	const box = "var/mail/you"
	if err := os.RemoveAll(filepath.Join(r.dovecot.Root, box)); err != nil {
		r.t.Fatal(err)
	}
	for i, m := range messages {
		r.dovecot.Write(filepath.Join(box, "new", strconv.Itoa(i)), m)
	}
	for _, dir := range []string{"", "new", "cur", "tmp"} {
		path := filepath.Join(r.dovecot.Root, box, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.Chown(path, harness.VmailUID, harness.VmailUID); err != nil {
			r.t.Fatal(err)
		}
	}
	out := []byte(r.dovecot.Run("/usr/bin/doveadm", "-f", "tab", "fetch", "-u", harness.Mailbox, "guid imap.envelope", "ALL"))
	all := make([][]string, len(messages))
	_, out, _ = bytes.Cut(out, []byte("\n")) // the names of the columns
	rows := 0
	for ; len(out) > 0; rows++ {
		guid, envelope, _ := bytes.Cut(out, []byte("\t"))
		i, err := strconv.Atoi(string(guid))
		if err == nil {
			all[i], out, err = envelopeSenders(envelope)
		}
		if err != nil {
			r.t.Fatalf("envelope %.500q: %v", envelope, err)
		}
	}
	if rows != len(messages) {
		r.t.Fatalf("doveadm fetched %d of %d messages", rows, len(messages))
	}
	return all
}

var (
	quotedString = regexp.MustCompile(`(?s)^"((?:[^"\\]|\\.)*)"`)
	quotedPair   = regexp.MustCompile(`(?s)\\(.)`)
)

// envelopeSenders returns the addresses of an ENVELOPE's from, sender and reply-to (RFC 3501,
// section 7.4.2), and what follows its line. They are the third to the fifth item, each NIL or
// a list of (name route local domain).
func envelopeSenders(rest []byte) (found []string, after []byte, err error) {
	var parts []string // of the present address
	depth, item := 0, 0
	for len(rest) > 0 && (depth > 0 || rest[0] != '\n') {
		c := rest[0]
		value, isValue := "", true
		switch {
		case c == '(':
			depth, parts, rest, isValue = depth+1, nil, rest[1:], false
		case c == ')':
			depth, rest, isValue = depth-1, rest[1:], false
			if depth == 1 && item >= 2 && item <= 4 && len(parts) == 4 {
				found = append(found, parts[2]+"@"+parts[3])
			}
		case c == ' ':
			rest, isValue = rest[1:], false
		case c == '"':
			m := quotedString.FindSubmatch(rest)
			if m == nil {
				return nil, nil, fmt.Errorf("no end of %.100q", rest)
			}
			value, rest = quotedPair.ReplaceAllString(string(m[1]), "$1"), rest[len(m[0]):]
		case c == '{':
			size, text, _ := bytes.Cut(rest[1:], []byte("}\r\n"))
			n, err := strconv.Atoi(string(size))
			if err != nil || n > len(text) {
				return nil, nil, fmt.Errorf("literal %q", size)
			}
			value, rest = string(text[:n]), text[n:]
		case bytes.HasPrefix(rest, []byte("NIL")):
			rest = rest[len("NIL"):]
		default:
			return nil, nil, fmt.Errorf("%q is no item", c)
		}
		if isValue {
			parts = append(parts, value)
		}
		if depth == 0 && (isValue || c == ')') {
			item++
		}
	}
	if item != 10 {
		return nil, nil, fmt.Errorf("%d items", item)
	}
	return found, rest[min(1, len(rest)):], nil
}
