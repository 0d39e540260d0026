package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/internal/smtptest"
)

// ending is one way to end a message and begin another behind it, where a server
// can be misled.
type ending struct {
	id       string
	text     string // between the body and the second transaction
	newline  string // ends the first header line
	bytewise bool   // each byte comes in a packet of its own
}

// endings are all of end-of-data.tsv, in each variant.
func endings(t testing.TB) []ending {
	t.Helper()
	data, err := os.ReadFile("../../smtpfilter/wire/testdata/end-of-data.tsv")
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

// input is what follows the 354: a message, and in it, or behind it, a second
// transaction.
func (e ending) input() string {
	return "Subject: visible [" + e.id + "]" + e.newline + "\r\nvisible" + e.text +
		"MAIL FROM:<smuggled@example.com>\r\nRCPT TO:<" + mailbox + ">\r\nDATA\r\n" +
		"Subject: smuggled [" + e.id + "]\r\n\r\nsmuggled\r\n.\r\n"
}

// send plays the dialogue with a server and returns the reply to the message,
// "" where there was none.
func (e ending) send(addr string) (string, error) {
	c, err := dial(addr, "")
	if err != nil {
		return "", err
	}
	defer c.Close()
	for _, line := range []string{"MAIL FROM:<a@example.com>", "RCPT TO:<" + mailbox + ">", "DATA"} {
		if reply, err := c.ask(line); err != nil || reply[0] > '3' {
			return "", fmt.Errorf("%s: %q: %w", line, reply, err)
		}
	}
	// The server may hang up before the end.
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
	reply, _ := c.reply()
	io.WriteString(c, "QUIT\r\n")
	c.Conn.(*net.TCPConn).CloseWrite()
	c.SetReadDeadline(time.Now().Add(waitLimit))
	_, err = io.Copy(io.Discard, c.in)
	if ne, ok := err.(net.Error); ok && ne.Timeout() {
		return reply, fmt.Errorf("the connection is still open: %w", err)
	}
	return reply, nil
}

// endingHop is a server that the dialogues are played with, directly or through
// a gate.
type endingHop struct {
	name  string
	bites bool // it is known to end messages where others do not

	// start starts it. Messages are those that have come, once nothing more can
	// come.
	start func(t testing.TB) (addr string, messages func() []string)
}

var endingHops = []endingHop{
	{"sink", false, func(t testing.TB) (string, func() []string) {
		sink := smtptest.NewSink(t)
		return sink.Addr(), func() []string { return settledSink(sink) }
	}},
	{"Postfix", true, func(t testing.TB) (string, func() []string) {
		p := startPostfix(t, everywhere)
		return p.addr, func() []string { return settledPostfix(t, p) }
	}},
	{"Exim", true, func(t testing.TB) (string, func() []string) {
		s := startExim(t, eximOptions{})
		return s.addr, func() []string { return settledExim(t, s) }
	}},
	{"OpenSMTPD", true, func(t testing.TB) (string, func() []string) {
		s := startOpenSMTPD(t)
		return s.addr, func() []string { return settledOpenSMTPD(t, s) }
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

// settledPostfix waits until Postfix has nothing more to do, and returns the
// messages that it has delivered.
func settledPostfix(t testing.TB, p *postfix) []string {
	t.Helper()
	p.logged()
	// Looked at twice, the queue shows the report about a message that has just left.
	pollFor(t, "Postfix's sessions and deliveries to end", func() bool {
		return len(p.logLines(" connect from")) == len(p.logLines("disconnect from")) &&
			noFiles(filepath.Join(p.dir, "queue"), "incoming", "active", "deferred", "incoming", "active", "deferred")
	})
	return readAll(t, filepath.Join(p.dir, "mail/you/new"))
}

func settledExim(t testing.TB, s *tree) []string {
	t.Helper()
	pollFor(t, "Exim's sessions and deliveries to end", func() bool {
		return len(s.processes()) == 1 && noFiles(filepath.Join(s.root, "var/spool/exim4"), "input")
	})
	return readAll(t, filepath.Join(s.root, "var/mail/you/new"))
}

func settledOpenSMTPD(t testing.TB, s *tree) []string {
	t.Helper()
	pollFor(t, "OpenSMTPD's sessions and deliveries to end", func() bool {
		return len(s.logLines("smtp connected")) == len(s.logLines("smtp disconnected")) &&
			noFiles(filepath.Join(s.root, "var/spool/smtpd"), "incoming", "queue")
	})
	return readAll(t, filepath.Join(s.root, "var/mail/you/new"))
}

// noFiles reports whether some directories, and those in them, hold no files.
func noFiles(root string, names ...string) bool {
	for _, name := range names {
		found := false
		filepath.WalkDir(filepath.Join(root, name), func(_ string, d os.DirEntry, err error) error {
			found = found || err == nil && !d.IsDir()
			return nil // what is gone by now is none
		})
		if found {
			return false
		}
	}
	return true
}

func readAll(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// TestEndings plays each dialogue with each server through a gate: what comes is
// one message at most. Played directly with the servers, some bring two.
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

// copies are the messages that hold a dialogue's id.
func (e ending) copies(messages []string) []string {
	var mine []string
	for _, m := range messages {
		if strings.Contains(m, "["+e.id+"]") {
			mine = append(mine, m)
		}
	}
	return mine
}

// trueEnd reports whether the ending is one by RFC 5321, CRLF.CRLF, whatever
// stands in front of it.
func (e ending) trueEnd() bool { return strings.Contains(e.text, "\r\n.\r\n") }

// whole reports whether a message holds what is before the ending, and what is
// behind it unless that is a true end.
func (e ending) whole(message string) bool {
	return strings.Contains(message, "visible ["+e.id+"]") && strings.Contains(message, "smuggled ["+e.id+"]") != e.trueEnd()
}

// gateEndings plays the dialogues through a gate with further keys for its
// listener.
func gateEndings(t *testing.T, hop endingHop, all []ending, keys string) {
	addr, messagesThere := hop.start(t)
	g := startGate(t, setup{nextHop: "smtp://" + addr, keys: map[string]string{"listen": keys}})
	replies := map[string]string{}
	for _, e := range all {
		reply, err := e.send(g.addr)
		if err != nil {
			t.Errorf("%s: %v", e.id, err)
		}
		replies[e.id] = reply
	}
	g.stop()
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

// directEndings proves that the dialogues are worth playing: the server ends some
// messages where they do not end. Most servers then take the rest for commands;
// some mind that these come at once, which a patient client need not do.
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
		// The one row with a true end in it makes two messages everywhere.
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
