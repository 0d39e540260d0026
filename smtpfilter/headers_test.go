package smtpfilter_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
)

// hostileHeader is one block of testdata/headers.txt.
type hostileHeader struct {
	name, why string
	line      int
	text      []byte // the message
	decision  string // "accept", "reject" or "refuse"
	about     string // what a reply must say: the sender, or the code
}

// bodyOfHeaders stands behind each header that ends.
const bodyOfHeaders = "\r\nFrom: body@listed.example\r\n\r\n.\r\n..From: body@listed.example\r\n"

// readHeaders reads testdata/headers.txt, whose head describes its format.
func readHeaders(t *testing.T) []hostileHeader {
	t.Helper()
	data, err := os.ReadFile("testdata/headers.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []hostileHeader
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		kind, text, _ := strings.Cut(line, " ")
		if kind == "case" {
			all = append(all, hostileHeader{name: text, line: number})
			continue
		}
		h := &all[len(all)-1]
		switch kind {
		case "why":
			h.why = strings.TrimSpace(text)
		case "|":
			h.text = append(h.text, smtptest.Expand(text)+"\r\n"...)
		case "R":
			h.text = append(h.text, smtptest.Expand(text)...)
		case "body":
			h.text = append(h.text, bodyOfHeaders...)
		case "accept", "reject", "refuse":
			h.decision, h.about = kind, text
		default:
			t.Fatalf("headers.txt:%d: %q is no kind of line", number, kind)
		}
	}
	return all
}

// TestHostileHeaders sends each header of testdata/headers.txt with DATA, with BDAT to a
// next hop that receives DATA, and in several chunks to one that receives chunks. It
// checks the decision that is written there, and that accepted mail arrives unchanged.
func TestHostileHeaders(t *testing.T) {
	headers := readHeaders(t)
	if len(headers) < 80 {
		t.Fatalf("%d headers: the file was not read", len(headers))
	}
	for _, way := range []struct {
		name      string
		chunks    int // 0 is DATA
		extension string
	}{
		{"data", 0, "VRFY"},
		{"bdat to data", 1, "VRFY"},
		{"chunks to chunks", 7, "CHUNKING"},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			sink := smtptest.NewSink(t, smtptest.Config{Extensions: append(slices.Clone(smtptest.DefaultExtensions), way.extension)})
			g := newGate(t, gateOptions{
				nextHop: sink.Addr(),
				checker: mustJudge(t, "header @listed.example reject", "header @bücher.example reject", "form @listed.example reject"),
				policy:  smtpfilter.Policy{HeaderFields: []string{"From", "Sender", "Reply-To"}, MaxHeaderBytes: 2 << 20},
				reuse:   true,
			})
			for i, h := range headers {
				h.check(t, dial(t, g.addr), sink, fmt.Sprintf("case-%d@example.com", i), way.chunks)
			}
			if v := sink.Violations(); len(v) > 0 {
				t.Errorf("the next hop got what no client may send: %q", v)
			}
		})
	}
}

// check sends the message, in a number of chunks or with DATA, and checks its outcome.
func (h *hostileHeader) check(t *testing.T, c *client, sink *smtptest.Sink, from string, chunks int) {
	t.Helper()
	defer c.Close()
	got := h.send(c, from, chunks)
	want := map[string]string{"accept": "250 ", "reject": "550 5.7.1 <" + h.about + "> refused: ", "refuse": h.about + " "}[h.decision]
	if h.why == "" || want == "" {
		t.Errorf("headers.txt:%d: a reason or a decision is missing", h.line)
	}
	if !strings.HasPrefix(got, want) {
		t.Errorf("headers.txt:%d: %s (%s): the gate says %q, want %q", h.line, h.name, h.why, got, want)
	}
	var copies [][]byte
	for _, m := range sink.Messages() {
		if strings.HasPrefix(m.Mail, "MAIL FROM:<"+from+">") {
			copies = append(copies, m.Body)
		}
	}
	if h.decision != "accept" {
		if len(copies) > 0 {
			t.Errorf("headers.txt:%d: %s: it was delivered", h.line, h.name)
		}
		return
	}
	if len(copies) != 1 || !bytes.HasSuffix(copies[0], h.text) {
		t.Errorf("headers.txt:%d: %s: %d copies, %.300q", h.line, h.name, len(copies), copies)
		return
	}
	trace := string(copies[0][:len(copies[0])-len(h.text)])
	if begins := h.text[0]; begins == ' ' || begins == '\t' {
		trace, _ = strings.CutSuffix(trace, "X-Spamgate-Note: the message began with this white space:\r\n")
	}
	if err := checkTrace(trace); err != nil {
		t.Errorf("headers.txt:%d: %s: %v", h.line, h.name, err)
	}
}

// send returns the reply to the message.
func (h *hostileHeader) send(c *client, from string, chunks int) string {
	c.t.Helper()
	c.reply("220")
	c.send("HELO client.example\r\nMAIL FROM:<" + from + ">\r\nRCPT TO:<b@example.net>\r\n")
	for range 3 {
		c.reply("250")
	}
	if chunks == 0 {
		c.send("DATA\r\n")
		c.reply("354")
		c.send(string(stuff(h.text)))
		reply, _ := c.readReply()
		return reply
	}
	size := len(h.text)/chunks + 1
	for piece := range slices.Chunk(h.text, size) {
		last := ""
		if &piece[len(piece)-1] == &h.text[len(h.text)-1] {
			last = " LAST"
		}
		c.send(fmt.Sprintf("BDAT %d%s\r\n%s", len(piece), last, piece))
		reply, err := c.readReply()
		if last != "" || err != nil || !strings.HasPrefix(reply, "250") {
			return reply
		}
	}
	return "no last chunk"
}
