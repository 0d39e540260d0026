package alike

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// mail is a message of the corpus.
type mail struct {
	what   string // where it comes from
	helo   string // its own: the log is searched for it
	from   string // without brackets
	rcpts  []string
	header string // lines with CRLF
	body   string // "" for plainBody
	client string // its address; "" for this machine
}

// plainBody is the body of most messages.
const plainBody = "hello\r\n"

// text returns the header, the empty line and the body.
func (m mail) text() string { return m.header + "\r\n" + m.content() }

func (m mail) content() string { return cmp.Or(m.body, plainBody) }

// lists are the tables of the lists, one for each thing that a list may do.
const lists = `
[[list]]
name = "always"
path = "always.txt"
type = "allow"
override = true
[[list]]
name = "known"
path = "known.txt"
type = "allow"
[[list]]
name = "blocked"
path = "blocked.txt"
` + harness.MilderLists + `
[[list]]
name = "secret"
path = "secret.txt"
public_reason = false
[[list]]
name = "watched"
path = "watched.txt"
action = "monitor"
[[list]]
name = "header-only"
path = "header.txt"
stage = ["header"]
[[list]]
name = "softer"
path = "softer.txt"
header_action = "tag"
`

// files are the lists.
var files = map[string]string{
	"always.txt": "cleared@reject.example\n",
	"known.txt":  "known.reject.example\nknown@defer.example\n",
	"blocked.txt": `reject.example  # 100% bulk mail
!press@reject.example
ann@address.example  # just her
*.below.example  # what is below
spammer@  # any domain's
<>  # no bounces here
@[192.0.2.66]  # a literal
# What the header corpora want to be listed.
listed.example  # a listed domain
bücher.example
boss@mx.example.org
chief@example.org
b.example
`,
	"later.txt":   "defer.example  # not now\n",
	"dropped.txt": "discard.example  # dropped\n",
	"marked.txt":  "tag.example  # unsure ; really\nreject.tag.example\n",
	"secret.txt":  "secret.example  # nobody's business\n",
	"watched.txt": "watched.example  # we look\nreject.example\n",
	"header.txt":  "header.example  # in the header\n",
	"softer.txt":  "softer.example  # softer in the header\n",
}

// senders are reverse-paths, one for each thing that a list may say.
var senders = []string{
	"a@clean.example", "a@reject.example", "ann+tag@address.example", "x@in.below.example", "cleared@reject.example",
	"a@known.reject.example", "press@reject.example", "a@defer.example", "known@defer.example", "a@discard.example",
	"a@tag.example", "a@reject.tag.example", "a@secret.example", "a@watched.example", "a@header.example", "a@softer.example",
	"spammer@any.example", "a@[192.0.2.66]", "Ann@ADDRESS.Example", "",
}

// recipients are those of one message each. Every sender reaches postmaster and open@.
var recipients = [][]string{
	{"you@example.org"},
	{"postmaster@example.org"},
	{"you@example.org", "open@example.org", "she@example.org"},
}

// maxHeader is more than the gate's limit, and less than a packet of a milter. A mail server
// cuts a longer header.
const maxHeader = 1_000_000

// headers are header sections, the first one clean.
var headers = []string{
	"From: a@clean.example\r\nSubject: plain\r\n",
	"Subject: nobody\r\n",
	"From: x@discard.example, y@tag.example\r\nReply-To: a@tag.example\r\n",
}

// corpus returns all messages.
func corpus(t testing.TB) []mail {
	var all []mail
	add := func(what, from string, rcpts []string, header string) {
		all = append(all, mail{what: what, helo: fmt.Sprintf("m%d.client.example", len(all)), from: from, rcpts: rcpts, header: header})
	}
	for _, s := range senders {
		for _, rcpts := range recipients {
			for _, header := range headers {
				add("matrix", s, rcpts, header)
			}
		}
	}
	for _, s := range senders[1:] {
		for _, from := range []string{"a@clean.example", "a@tag.example", "cleared@reject.example"} {
			add("matrix of headers", from, recipients[2], "From: Ann <a@clean.example>\r\nSender: <"+s+">\r\n")
		}
	}
	for _, path := range lines(t, "../addresses/testdata/senders.txt") {
		if strings.HasPrefix(path, "<") && strings.HasSuffix(path, ">") && !strings.ContainsAny(path, "\r\n\x00") {
			add("envelope "+path, path[1:len(path)-1], recipients[0], headers[0])
		}
	}
	for _, line := range lines(t, "../addresses/testdata/headers.txt") {
		add("header "+line, "a@clean.example", recipients[0], line+"\r\n")
	}
	for i, line := range lines(t, "../addresses/testdata/headerforms.txt") {
		line = strings.NewReplacer("N", fmt.Sprint(i), "\\r\\n ", "\r\n ", "\\r\\n\t", "\r\n\t").Replace(line)
		add("form "+line, "a@clean.example", recipients[2], "From: "+line+"\r\n")
	}
	for name, section := range blocks(t, "../../../smtpfilter/testdata/headers.txt") {
		add(name, "a@clean.example", recipients[2], section)
	}
	for name, section := range blocks(t, "../../../smtpfilter/header/testdata/cases.txt") {
		add(name, "a@clean.example", recipients[0], section)
	}
	sound := all[:0]
	for _, m := range all {
		if fields(m.header) != nil && len(m.header) < maxHeader {
			sound = append(sound, m)
		}
	}
	return sound
}

// lines returns the lines of a file that are not comments, with \xNN as bytes.
func lines(t testing.TB, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSuffix(line, []byte("\n")); len(line) > 0 && line[0] != '#' {
			all = append(all, smtptest.Expand(string(line)))
		}
	}
	return all
}

// blocks returns the header sections of a file by name: the lines that begin with "|", and
// with "R" for bytes without the end of a line.
func blocks(t testing.TB, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	var name string
	for line := range strings.Lines(string(text)) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch kind {
		case "case":
			name = rest
		case "|":
			all[name] += smtptest.Expand(rest) + "\r\n"
		case "R":
			all[name] += smtptest.Expand(rest)
		}
	}
	return all
}

// field is one of a header, as a mail server tells a milter: the value has what follows the
// colon, and LF where it is folded.
type field struct{ name, value string }

var fieldStart = regexp.MustCompile("^([!-9;-~]+)[ \t]*:")

// fields returns the fields of a header, or nil if a mail server would not take all of it
// for fields: NUL, a CR or LF alone, a line that is neither a field nor folded.
func fields(section string) []field {
	if !strings.HasSuffix(section, "\r\n") || strings.ContainsAny(strings.ReplaceAll(section, "\r\n", ""), "\r\n\x00") {
		return nil
	}
	var all []field
	for line := range strings.SplitSeq(strings.TrimSuffix(section, "\r\n"), "\r\n") {
		switch m := fieldStart.FindStringSubmatch(line); {
		case line != "" && (line[0] == ' ' || line[0] == '\t') && len(all) > 0:
			all[len(all)-1].value += "\n" + line
		case m != nil:
			all = append(all, field{m[1], line[len(m[0]):]})
		default:
			return nil
		}
	}
	return all
}
