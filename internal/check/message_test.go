package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"spamgate/blocklist/verdict"
)

const messageConfig = `
policy.recipient_domains = ["example.net"]
resolver.addr = ["127.0.0.1:9"]
[[list]]
name = "allowed"
path = "allowed.txt"
type = "allow"
proven_by = ["spf", "dkim"]
[[list]]
name = "blocked"
path = "blocked.txt"
[[list]]
name = "personal"
path = "personal.txt"
per_recipient = true
[[milter]]
addr = "127.0.0.1:2526"
`

var messageFiles = map[string]string{
	"allowed.txt": "partner.example\n", "blocked.txt": "bad.example\npartner.example\n", "personal.txt": "ann@example.net news.example\n",
}

// TestEngineMessage: what becomes of a message, as text and as JSON, and what is no message.
func TestEngineMessage(t *testing.T) {
	e := engineOf(t, messageConfig, messageFiles)
	from := "a@news.example"
	a, err := e.Message(t.Context(), strings.NewReader("From: b@bad.example\n\nHello\n"), MessageQuestion{
		Question: Question{Recipients: []string{"ann@example.net", "bob@example.net"}, Offline: true}, Name: "the message", From: &from,
	})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	a.Print(&text)
	if a.Action != verdict.Reject || !a.Listed || !strings.HasPrefix(text.String(), "the message: reject\n") {
		t.Errorf("%s\n%s", a.Action, &text)
	}
	encoded, err := json.Marshal(a.JSON)
	if err != nil || !bytes.Contains(encoded, []byte(`"action":"reject"`)) {
		t.Errorf("%s, %v", encoded, err)
	}

	var many strings.Builder
	for i := range 1001 {
		fmt.Fprintf(&many, "a%d@b.example,\n ", i)
	}
	for _, c := range []struct {
		message io.Reader
		rcpt    string
		want    string // "": accepted
	}{
		{strings.NewReader("Subject: x\n\nabc"), "bob@example.net", ""},
		{zeros{}, "postmaster@example.net", "550 5.5.2 Refused: NUL in the message; id ID"},
		{strings.NewReader("Subject: x\n\na\rb\n"), "postmaster@example.net", "550 5.5.2 Refused: bare CR or LF in the message; id ID"},
		{strings.NewReader("Subject: x\r\n\r\na\r\r\n"), "bob@example.net", "550 5.5.2 Refused: bare CR or LF in the message; id ID"},
		{strings.NewReader("Subject: x\r\n\r\na\r"), "bob@example.net", "550 5.5.2 Refused: bare CR or LF in the message; id ID"},
		{strings.NewReader("Subject: " + strings.Repeat("x", 256<<10)), "bob@example.net", "552 5.3.4 Header section larger than 262144 bytes"},
		{strings.NewReader(strings.Repeat("Received: x\n", 101)), "postmaster@example.net", "554 5.4.6 Too many hops (101 Received fields); id ID"},
		{strings.NewReader("From: " + many.String() + "\n\n"), "bob@example.net", "554 5.6.0 Header field From too long: 17915 bytes (limit 16384); id ID"},
		{strings.NewReader("From: " + strings.Repeat("a b c ", 1000) + "\n\n"), "bob@example.net", "554 5.6.0 Header field From has a line of 6006 bytes (limit 998); id ID"},
		{strings.NewReader("From: " + strings.Repeat("a b c ", 1000) + "\n\n"), "postmaster@example.net", ""},
	} {
		a, err := e.Message(t.Context(), c.message, MessageQuestion{
			Question: Question{Recipients: []string{c.rcpt}, Offline: true}, Name: "it", From: &from,
		})
		if err != nil {
			t.Errorf("%s: %v", c.want, err)
			continue
		}
		var text bytes.Buffer
		a.Print(&text)
		r := a.JSON.(messageResult)
		refused := c.want != ""
		if r.Reply != c.want || a.Listed != refused || refused != strings.HasPrefix(text.String(), "it: reject\n  the client hears: "+c.want+"\n") {
			t.Errorf("%s, want %s\n%s", r.Reply, c.want, &text)
		}
		if each := r.ToEach[0]; each.Reply != c.want || (each.Action == verdict.Reject) != refused {
			t.Errorf("%+v, want %s", each, c.want)
		}
	}

	wrong := "no address"
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	endless := io.MultiReader(strings.NewReader("DKIM-Signature: v=1; a=rsa-sha256; d=partner.example; s=s; h=from; bh=YQ==; b=YQ==\nFrom: a@partner.example\n\n"), zeros{})
	for _, tt := range []struct {
		ctx     context.Context
		message io.Reader
		q       MessageQuestion
		want    string
	}{
		{t.Context(), strings.NewReader(""), MessageQuestion{Name: "it"}, "message: it is empty"},
		{t.Context(), endless, MessageQuestion{}, "message: the message has more than 52428800 bytes"},
		{t.Context(), strings.NewReader("From: a@b.example\n\n"), MessageQuestion{From: &wrong}, `from "no address" is not an address`},
		{ended, strings.NewReader("From: a@b.example\n\n"), MessageQuestion{}, "message: context canceled"},
	} {
		if _, err := e.Message(tt.ctx, tt.message, tt.q); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

// zeros never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// FuzzMessage: whatever a message holds, the answer can be printed and encoded, and both say the
// same action.
func FuzzMessage(f *testing.F) {
	e := engineOf(f, messageConfig, messageFiles)
	f.Add("From: a@bad.example\n\nHello\n", "a@partner.example", "ann@example.net")
	f.Add("From x\nReturn-Path: <>\nFrom: \"x\" <a%bad.example@example.net>, host!user\r\n\r\n", "", "")
	f.Add("Return-Path: <srs0=a=b=bad.example=x@fwd.example>\nSender: =?utf-8?q?a=40bad.example?=\n", "\x00", "postmaster")
	f.Add("DKIM-Signature: d=partner.example; s=x; b=; bh=\nFrom: a@partner.example\nFrom: b@\xff\n\n.", "<>", "bob@example.net")
	f.Add(strings.Repeat("Sender: a@b.example\n", 100), strings.Repeat("a", 5000), "@example.net")
	f.Fuzz(func(t *testing.T, message, from, rcpt string) {
		q := MessageQuestion{Question: Question{Offline: true, Past: len(message)%2 == 0}, Name: "the message"}
		if from != "" {
			q.From = &from
		}
		if rcpt != "" {
			q.Recipients = []string{rcpt}
		}
		a, err := e.Message(t.Context(), strings.NewReader(message), q)
		if errors.Is(err, verdict.ErrNoAnswer) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		var text bytes.Buffer
		a.Print(&text)
		encoded, err := json.Marshal(a.JSON)
		if err != nil {
			t.Fatal(err)
		}
		var shown struct{ Action string }
		if err := json.Unmarshal(encoded, &shown); err != nil || shown.Action != a.Action.String() {
			t.Fatalf("%s, but %s, %v", a.Action, encoded, err)
		}
		if !strings.HasPrefix(text.String(), "the message: "+shown.Action) {
			t.Fatalf("%s, but %s", shown.Action, &text)
		}
	})
}
