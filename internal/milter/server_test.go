package milter

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/door"
)

// The packets of a mail server before its first message, and what is answered.
var begin = []string{
	"> O 6 1ff 1fffff", "< O 6 109 1033d0 0:j 2:i {auth_authen} 3:i {rcpt_addr} 4:i 5:i 6:i",
	"> C client.example 4 25 192.0.2.1", "> H client.example|",
}

// TestShutdown: a connection between two messages ends at once, and a message that has begun
// gets its answer.
func TestShutdown(t *testing.T) {
	g := newTestServer(t)
	idle, busy := g.dial(t), g.dial(t)
	play(t, idle, append(begin, "> M <a@clean.example>|", "< c", "> R <you@example.net>|", "< c", "> E", "< c", "> A"))
	play(t, busy, append(begin, "> M <a@clean.example>|", "< c", "> R <you@example.net>|", "< c"))
	done := make(chan error, 1)
	go func() { done <- g.Shutdown(t.Context()) }()
	play(t, idle, []string{"< end"})
	play(t, busy, []string{"> L From| a@reject.example|", "> E",
		"< y 550 5.7.1 <a@reject.example> refused: list blocked (100%% bulk mail); id ID|", "< end"})
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got, want := g.meter.String(), "to:accepted accepted to:accepted listed"; got != want {
		t.Errorf("counted %q, want %q", got, want)
	}
}

// TestShutdownInTime: a message that does not end is cut off when the time is over.
func TestShutdownInTime(t *testing.T) {
	g := newTestServer(t)
	c := g.dial(t)
	play(t, c, append(begin, "> M <a@clean.example>|", "< c", "> R <you@example.net>|", "< c"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Shutdown(ctx); err == nil {
		t.Error("no error")
	}
	play(t, c, []string{"< end"})
	if got, want := g.meter.String(), "to:accepted abandoned"; got != want {
		t.Errorf("counted %q, want %q", got, want)
	}
}

// TestApply: new settings are for the next message, also on an open connection.
func TestApply(t *testing.T) {
	g := newTestServer(t)
	c := g.dial(t)
	play(t, c, append(begin, "> M <a@reject.example>|", "< c"))
	changed := settings(t)
	changed.Policy.RejectText = "go away; id {id}"
	g.Apply(changed)
	play(t, c, []string{
		"> R <you@example.net>|", "< y 550 5.7.1 <a@reject.example> refused: list blocked (100%% bulk mail); id ID|", "> A",
		"> M <a@reject.example>|", "< c", "> R <you@example.net>|", "< y 550 5.7.1 go away; id ID|",
	})
}

// TestLargeHeader: a header that is too long is not kept, whether it is one field or many.
func TestLargeHeader(t *testing.T) {
	for _, c := range []struct {
		size, fields int
		want         string
	}{
		{3000, 1, "c"}, // the limit is 4096
		{100, 30, "c"},
		{5000, 1, "y 552 5.3.4 Header section larger than 4096 bytes|"},
		{1_000_000, 1, "y 552 5.3.4 Header section larger than 4096 bytes|"},
		{1000, 1000, "y 552 5.3.4 Header section larger than 4096 bytes|"},
	} {
		steps := append(begin, "> M <a@clean.example>|", "< c", "> R <you@example.net>|", "< c")
		for range c.fields {
			steps = append(steps, "> L X| "+strings.Repeat("x", c.size)+"|")
		}
		g := newTestServer(t)
		// The next message is as if the first had not been.
		play(t, g.dial(t), append(steps, "> E", "< "+c.want, "> M <a@clean.example>|", "< c", "> R <you@example.net>|", "< c", "> E", "< c"))
	}
}

// TestManyRecipients: a message may have 10,000 recipients, each with its own answer, but not
// any number of them.
func TestManyRecipients(t *testing.T) {
	d := dialogue{steps: append(begin, "> M <a@discard.example>|", "> R <abuse@example.net>|")}
	for i := range 10_000 {
		d.steps = append(d.steps, fmt.Sprintf("> R <you%d@example.net>|", i))
	}
	d.steps = append(d.steps, "> E")
	answers, _ := answersTo(t, bytes.NewReader(d.sent(t)))
	if len(answers) != 1+1+1+10_000+10_000+1 || answers[20_002] != "- <you9999@example.net>|" || answers[20_003] != "c" {
		t.Errorf("%d answers: %q ...", len(answers), answers[max(0, len(answers)-3):])
	}

	d.steps = append(begin, "> M <a@clean.example>|")
	for range maxPaths / maxPacket {
		d.steps = append(d.steps, "> R <"+strings.Repeat("x", maxPacket-100)+"@example.net>|")
	}
	answers, _ = answersTo(t, bytes.NewReader(d.sent(t)))
	if last := answers[len(answers)-1]; last != "y 452 4.5.3 Too many recipients|" || answers[len(answers)-2] != "c" {
		t.Errorf("to the last recipient: %q", last)
	}
}

// TestRecipientsOfEachMessage: the bound of the recipients is that of a message, not of the
// connection, however the messages before have ended.
func TestRecipientsOfEachMessage(t *testing.T) {
	rcpt := "> R <" + strings.Repeat("x", maxPacket-100) + "@example.net>|"
	d := dialogue{steps: slices.Clone(begin)}
	for _, end := range []string{"> A", "> E", "> E"} {
		d.steps = append(d.steps, "> M <a@clean.example>|")
		d.steps = append(append(d.steps, slices.Repeat([]string{rcpt}, maxPaths/maxPacket/2+1)...), end)
	}
	answers, _ := answersTo(t, bytes.NewReader(d.sent(t)))
	for i, a := range answers[1:] {
		if a != "c" {
			t.Errorf("answer %d is %q", i+1, a)
		}
	}
}

// TestLargeMacros: macros that nobody asked for are not kept.
func TestLargeMacros(t *testing.T) {
	g := newTestServer(t)
	var many strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&many, "{macro%d}|%s|", i, strings.Repeat("x", 50))
	}
	play(t, g.dial(t), append(begin, "> D M"+many.String()+"i|4ABC|", "> D M{auth_authen}|"+strings.Repeat("x", 500_000)+"|",
		"> M <a@reject.example>|", "< c", "> R <you@example.net>|", "< c", "> E", "< c"))
	if !strings.Contains(g.log.String(), "queue_id=4ABC") {
		t.Errorf("the log:\n%s", g.log)
	}
}

// TestClaimedLength: memory grows with what arrives, not with the length that a packet claims.
func TestClaimedLength(t *testing.T) {
	var buf []byte
	packet := binary.BigEndian.AppendUint32(nil, maxPacket)
	if _, _, err := readPacket(bufio.NewReader(strings.NewReader(string(packet)+"B")), &buf); err != errHalf {
		t.Error(err)
	}
	if cap(buf) > 2*keptBuffer {
		t.Errorf("a buffer of %d bytes", cap(buf))
	}
}

// message is a message of Postfix with a dozen fields, and the end of the one before.
func message(b testing.TB) []byte {
	steps := []string{"A", "D M", "M <bounce@news.clean.example>|SIZE=20000|", "D Ri|4ABC|", "R <you@example.net>|", "D Ti|4ABC|"}
	for _, field := range []string{
		"Received| from mx.clean.example (mx.clean.example [192.0.2.1])\n\tby relay.clean.example (Postfix) with ESMTPS id 4ABC\n\tfor <you@example.net>; Mon, 6 Jul 2026 10:00:00 +0000",
		"DKIM-Signature| v=1; a=rsa-sha256; d=clean.example; s=k1;\n\th=from:to:subject; bh=" + strings.Repeat("x", 44) + ";\n\tb=" + strings.Repeat("y", 300),
		"From| News <news@clean.example>", "To| you@example.net", "Subject| What is new", "Date| Mon, 6 Jul 2026 10:00:00 +0000",
		"Message-ID| <1@clean.example>", "MIME-Version| 1.0", "Content-Type| text/plain; charset=utf-8", "Reply-To| answers@clean.example",
		"List-Unsubscribe| <https://clean.example/unsubscribe?you>", "Precedence| bulk",
	} {
		steps = append(steps, "D Li|4ABC|", "L "+field+"|")
	}
	var all []byte
	for _, step := range append(steps, "D Ei|4ABC|", "E") {
		all = append(all, encode(b, step)...)
	}
	return all
}

// BenchmarkMessage measures a whole message without a network.
func BenchmarkMessage(b *testing.B) {
	s := New(door.Config{Name: "beside"}, settings(b))
	once := message(b)
	c := &byteConn{in: io.MultiReader(strings.NewReader(string(encode(b, "O 6 1ff 1fffff"))), &repeat{text: once, left: b.N})}
	b.ReportAllocs()
	b.SetBytes(int64(len(once)))
	s.handle(&door.Conn{Conn: discardConn{c}, Reader: bufio.NewReader(c)})
}

// discardConn forgets what is written to it.
type discardConn struct{ *byteConn }

func (discardConn) Write(p []byte) (int, error) { return len(p), nil }

// repeat reads a text several times.
type repeat struct {
	text []byte
	pos  int
	left int
}

func (r *repeat) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.text[r.pos:])
	if r.pos += n; r.pos == len(r.text) {
		r.pos, r.left = 0, r.left-1
	}
	return n, nil
}

// BenchmarkConnection measures a message over a kept TCP connection, each packet with its
// answer: MAIL, RCPT, and the end.
func BenchmarkConnection(b *testing.B) {
	g := newTestServer(b)
	c := g.dial(b)
	play(b, c, begin)
	mail := encode(b, "M <bounce@news.clean.example>|")
	rcpt := encode(b, "R <you@example.net>|")
	rest := append(encode(b, "L From| News <news@clean.example>|"), encode(b, "E")...)
	answer := make([]byte, 5)
	b.ResetTimer()
	for range b.N {
		for _, packet := range [][]byte{mail, rcpt, rest} {
			if _, err := c.Write(packet); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c, answer); err != nil || answer[4] != ansContinue {
				b.Fatal(err, answer)
			}
		}
	}
}
