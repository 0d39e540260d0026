package look

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/internal/logging"
)

// sendersOf is what a senderReader finds in a log.
func sendersOf(t *testing.T, log string) (found []string, r senderReader) {
	t.Helper()
	err := r.read(strings.NewReader(log), func(a sender.Address) { found = append(found, a.String()) })
	if err != nil {
		t.Fatalf("%q: %v", log, err)
	}
	if len(found) != r.Senders || r.Senders+r.Other+r.Hidden > r.Lines {
		t.Errorf("%q: %d senders found, and counted are %+v", log, len(found), r)
	}
	return found, r
}

// gateLine is a line as the gate logs a sender.
func gateLine(t *testing.T, format, from string) string {
	t.Helper()
	var b bytes.Buffer
	log, err := logging.New(logging.Options{Stderr: &b, Format: format})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	log.Logger.Info("accepted", slog.String("id", "6WBEDOKGOZK5"), slog.String("from", "<"+from+">"), slog.String("to", "<you@example.net>"))
	return b.String()
}

// FuzzSenders has logs of any bytes, and finds the address that a log of the gate,
// or of Postfix, has.
func FuzzSenders(f *testing.F) {
	f.Add("user@example.com")
	f.Add("")
	f.Add("user=x@example.com")
	f.Add(`"a b"@example.com`)
	f.Add(`"a\" from=<x@example.net>, "@example.com`)
	f.Add("bücher@bücher.example")
	f.Add("a@[IPv6:2001:db8::1]")
	f.Add("Nov 21 12:00:00 mx postfix/qmgr[7]: 4ABCDEF: from=<user@example.com>, size=1\nfrom=<")
	f.Add("{\"from\":\"<a@example.com>\",\"id\":\"x\"}\n{\"from\":1}\n{")
	f.Fuzz(func(t *testing.T, text string) {
		if !strings.HasPrefix(text, "\x1f\x8b") && len(text) < maxLogLine {
			sendersOf(t, text)
		}
		a, err := sender.Parse("<" + text + ">")
		if err != nil {
			return
		}
		logged := a.String()
		if logged == "<>" {
			logged = ""
		}
		lines := []string{gateLine(t, logging.FormatText, logged), gateLine(t, logging.FormatJSON, logged)}
		if !strings.Contains(logged, ">") { // Postfix writes it as it is
			lines = append(lines, "Nov 21 12:00:00 mx postfix/qmgr[7]: 4ABCDEF: from=<"+logged+">, size=1, nrcpt=1 (queue active)\n")
		}
		for _, line := range lines {
			if found, _ := sendersOf(t, line+line); len(found) != 1 || found[0] != a.String() {
				t.Errorf("%q: found %q, want %q, once", line, found, a.String())
			}
		}
	})
}

// What is no log is told as such, with the line.
func TestSenderReaderLongLine(t *testing.T) {
	var s senderReader
	n := 0
	err := s.read(strings.NewReader("a@b.example\n"+strings.Repeat("x", maxLogLine+1)), func(sender.Address) { n++ })
	if err == nil || !strings.Contains(err.Error(), "line 2: a line of more than 1048576 bytes is of no log") || n != 1 {
		t.Errorf("%d senders, %v", n, err)
	}
}
