package delivery

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// An ending is a sequence that some servers take for the end of a message, with a second
// transaction after it.
type ending struct {
	id       string
	text     string // between the body and the second transaction
	newline  string // ends the first header line
	bytewise bool   // each byte is a packet
}

// endings returns the endings of end-of-data.tsv, in each variant.
func endings(t testing.TB) []ending {
	t.Helper()
	data, err := os.ReadFile("../../../smtpfilter/wire/testdata/end-of-data.tsv")
	if err != nil {
		t.Fatal(err)
	}
	escapes := strings.NewReplacer(`\r`, "\r", `\n`, "\n", `\0`, "\x00")
	var all []ending
	for line := range strings.Lines(string(data)) {
		name, text, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		if !ok || name[0] == '#' {
			continue
		}
		for _, newline := range []string{"\r\n", "\n"} {
			for _, bytewise := range []bool{false, true} {
				id := fmt.Sprintf("%s-%d-%t", name, len(newline), bytewise)
				all = append(all, ending{id, escapes.Replace(text), newline, bytewise})
			}
		}
	}
	return all
}

// input returns what a client sends after the 354: a message, and in or after it a
// second transaction.
func (e ending) input() string {
	return "Subject: visible [" + e.id + "]" + e.newline + "\r\nvisible" + e.text +
		"MAIL FROM:<smuggled@example.com>\r\nRCPT TO:<" + harness.Mailbox + ">\r\nDATA\r\n" +
		"Subject: smuggled [" + e.id + "]\r\n\r\nsmuggled\r\n.\r\n"
}

// send plays the dialogue with a server and returns the reply to the message, or "" if
// there is none.
func (e ending) send(addr string) (string, error) {
	c, err := harness.Dial(addr, "")
	if err != nil {
		return "", err
	}
	defer c.Close()
	for _, line := range []string{"MAIL FROM:<a@example.com>", "RCPT TO:<" + harness.Mailbox + ">", "DATA"} {
		if reply, err := c.Ask(line); err != nil || reply[0] > '3' {
			return "", fmt.Errorf("%s: %q: %w", line, reply, err)
		}
	}
	// The server may close the connection before the end.
	input := e.input()
	if e.bytewise {
		for i := range len(input) {
			if _, err := io.WriteString(c, input[i:i+1]); err != nil {
				break
			}
		}
	} else {
		io.WriteString(c, input)
	}
	reply, _ := c.Reply()
	io.WriteString(c, "QUIT\r\n")
	c.Conn.(*net.TCPConn).CloseWrite()
	c.SetReadDeadline(time.Now().Add(harness.ReplyTimeout))
	_, err = io.Copy(io.Discard, c.Reader)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		return reply, fmt.Errorf("the connection is still open: %w", err)
	}
	return reply, nil
}

// An endingHop is a server that plays the dialogues, directly or with a gate before it.
type endingHop struct {
	name  string
	bites bool // it is known to end messages at wrong endings

	// start starts the server. The function that it returns waits until no more messages
	// can arrive, and returns them.
	start func(t testing.TB) (addr string, messages func() []string)
}

var endingHops = []endingHop{
	{"sink", false, func(t testing.TB) (string, func() []string) {
		sink := smtptest.NewSink(t)
		return sink.Addr(), func() []string { return settledSink(sink) }
	}},
	{"Postfix", true, func(t testing.TB) (string, func() []string) {
		p := harness.StartPostfix(t, harness.Everywhere)
		return p.Addr, func() []string { return harness.SettledPostfix(t, p) }
	}},
	{"Exim", true, func(t testing.TB) (string, func() []string) {
		s := harness.StartExim(t, harness.EximOptions{})
		return s.Addr, func() []string { return settledExim(t, s) }
	}},
	{"OpenSMTPD", true, func(t testing.TB) (string, func() []string) {
		s := harness.StartOpenSMTPD(t)
		return s.Addr, func() []string { return settledOpenSMTPD(t, s) }
	}},
}

func settledSink(sink *smtptest.Sink) []string {
	sink.WaitConns(0)
	var all []string
	for _, m := range sink.Messages() {
		all = append(all, string(m.Raw))
	}
	return all
}

func settledExim(t testing.TB, s *harness.ChrootServer) []string {
	t.Helper()
	harness.WaitFor(t, "Exim's sessions and deliveries to end", func() bool {
		return len(s.Processes()) == 1 && harness.HasNoFiles(filepath.Join(s.Root, "var/spool/exim4"), "input")
	})
	return harness.ReadAll(t, filepath.Join(s.Root, "var/mail/you/new"))
}

func settledOpenSMTPD(t testing.TB, s *harness.ChrootServer) []string {
	t.Helper()
	harness.WaitFor(t, "OpenSMTPD's sessions and deliveries to end", func() bool {
		return len(s.LogLines("smtp connected")) == len(s.LogLines("smtp disconnected")) &&
			harness.HasNoFiles(filepath.Join(s.Root, "var/spool/smtpd"), "incoming", "queue")
	})
	return harness.ReadAll(t, filepath.Join(s.Root, "var/mail/you/new"))
}

// TestEndings plays each dialogue with each server through a gate: at most one message
// may arrive. Directly, some servers take two.
func TestEndings(t *testing.T) {
	t.Parallel()
	all := endings(t)
	for _, hop := range endingHops {
		t.Run(hop.name+"/direct", func(t *testing.T) {
			t.Parallel()
			directEndings(t, hop, all)
		})
		t.Run(hop.name+"/gate", func(t *testing.T) {
			t.Parallel()
			gateEndings(t, hop, all, "")
		})
	}
}

// copies returns the messages that hold the id of the dialogue.
func (e ending) copies(messages []string) []string {
	var mine []string
	for _, m := range messages {
		if strings.Contains(m, "["+e.id+"]") {
			mine = append(mine, m)
		}
	}
	return mine
}

// trueEnd reports whether the ending contains CRLF.CRLF, the end by RFC 5321.
func (e ending) trueEnd() bool { return strings.Contains(e.text, "\r\n.\r\n") }

// whole reports whether a message holds the text before the ending and, unless that is a
// true end, the text after it.
func (e ending) whole(message string) bool {
	return strings.Contains(message, "visible ["+e.id+"]") && strings.Contains(message, "smuggled ["+e.id+"]") != e.trueEnd()
}

// gateEndings plays the dialogues through a gate with more keys for its listener.
func gateEndings(t *testing.T, hop endingHop, all []ending, keys string) {
	addr, messagesThere := hop.start(t)
	g := harness.StartGate(t, harness.Setup{NextHop: "smtp://" + addr, Keys: map[string]string{"listen": keys}})
	replies := map[string]string{}
	for _, e := range all {
		reply, err := e.send(g.Addr)
		if err != nil {
			t.Errorf("%s: %v", e.id, err)
		}
		replies[e.id] = reply
	}
	g.Stop()
	messages := messagesThere()
	for _, e := range all {
		want := 0
		if strings.HasPrefix(replies[e.id], "250") {
			want = 1
		}
		came := e.copies(messages)
		if len(came) != want || want == 1 && !e.whole(came[0]) {
			t.Errorf("%s: %d messages, want %d and whole; the client heard %q\n%q", e.id, len(came), want, replies[e.id], came)
		}
	}
	if len(messages) == 0 || len(messages) == len(all) {
		t.Errorf("%d of %d messages came: some are to be refused, and some not", len(messages), len(all))
	}
}

// directEndings checks that the dialogues are worth playing: a server that is known for
// it ends some messages at wrong endings. Most of these servers then run the rest as
// commands. Some refuse commands that come at once, which a patient client can avoid.
func directEndings(t *testing.T, hop endingHop, all []ending) {
	addr, messagesThere := hop.start(t)
	for _, e := range all {
		if _, err := e.send(addr); err != nil {
			t.Errorf("%s: %v", e.id, err)
		}
	}
	messages := messagesThere()
	early, extra := 0, 0
	for _, e := range all {
		came := e.copies(messages)
		// Every server takes two messages from the row with a true end.
		if e.trueEnd() || len(came) == 1 && e.whole(came[0]) {
			continue
		}
		t.Logf("%-28s %d messages", e.id, len(came))
		extra += max(0, len(came)-1)
		early++
	}
	t.Logf("of %d messages %d ended too early; %d messages too many", len(all), early, extra)
	if hop.bites != (early > 0) {
		t.Error("want some that end too early where the server is known for it, and else none")
	}
}

// TestEndingsNormalize is TestEndings with a gate that normalizes bare newlines instead
// of refusing them.
func TestEndingsNormalize(t *testing.T) {
	t.Parallel()
	for _, hop := range endingHops {
		t.Run(hop.name, func(t *testing.T) {
			t.Parallel()
			gateEndings(t, hop, endings(t), `bare_newline = "normalize"`)
		})
	}
}
