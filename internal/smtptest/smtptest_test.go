package smtptest

import (
	"bufio"
	"crypto/sha256"
	"io"
	"net"
	"strings"
	"testing"
)

// dial connects a line-wise client.
func dial(t *testing.T, addr string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, bufio.NewReader(c)
}

// ask sends text and returns the line that comes back.
func ask(t *testing.T, c net.Conn, in *bufio.Reader, text string) string {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	line, err := in.ReadString('\n')
	if err != nil {
		t.Fatalf("after %q: %v", text, err)
	}
	return strings.TrimSuffix(line, "\r\n")
}

func TestSinkKeepsBytes(t *testing.T) {
	for name, body := range map[string]struct{ raw, want string }{
		"empty":       {"", ""},
		"plain":       {"a\r\n\r\nb\r\n", "a\r\n\r\nb\r\n"},
		"stuffed":     {"..\r\n.a\r\n", ".\r\na\r\n"},
		"bare LF":     {"a\n.\n.\r\nb\r\n", "a\n.\n.\r\nb\r\n"},
		"bare CR":     {"a\r.\r\r\n\x00\xff\r\n", "a\r.\r\r\n\x00\xff\r\n"},
		"long line":   {strings.Repeat("x", 200_000) + "\r\n", strings.Repeat("x", 200_000) + "\r\n"},
		"split CRLF":  {strings.Repeat("x", 64<<10-1) + "\r\n..\r\n", strings.Repeat("x", 64<<10-1) + "\r\n.\r\n"},
		"split CRLF2": {strings.Repeat("x", 64<<10) + "\r\n..\r\n", strings.Repeat("x", 64<<10) + "\r\n.\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			sink := NewSink(t, Config{Extensions: []string{}})
			c, in := dial(t, sink.Addr())
			in.ReadString('\n')
			ask(t, c, in, "EHLO client.example\r\n")
			ask(t, c, in, "MAIL FROM:<a@example.com>\r\n")
			ask(t, c, in, "RCPT TO:<b@example.net>\r\n")
			ask(t, c, in, "DATA\r\n")
			if reply := ask(t, c, in, body.raw+".\r\n"); reply != "250 2.0.0 Ok: queued" {
				t.Fatalf("reply %q", reply)
			}
			m := sink.Messages()
			if len(m) != 1 {
				t.Fatalf("%d messages", len(m))
			}
			if string(m[0].Body) != body.want || string(m[0].Raw) != body.raw {
				t.Errorf("body %.80q, raw %.80q", m[0].Body, m[0].Raw)
			}
			if m[0].Sum != sha256.Sum256([]byte(body.want)) || m[0].Size != int64(len(body.want)) {
				t.Errorf("sum or size %d of other bytes", m[0].Size)
			}
			if v := sink.Violations(); v != nil {
				t.Errorf("violations %q", v)
			}
		})
	}
}

func TestSinkReplies(t *testing.T) {
	sink := NewSink(t, Config{
		Replies: map[string]string{
			"GREETING":                "220-one\n220 two",
			"RCPT":                    "450 4.2.1 later",
			"RCPT TO:<b@example.net>": "250 2.1.5 this one",
			".":                       "554-5.6.0 no\n554 5.6.0 never\n" + Close,
		},
	})
	c, in := dial(t, sink.Addr())
	for _, want := range []string{"220-one\r\n", "220 two\r\n"} {
		if line, _ := in.ReadString('\n'); line != want {
			t.Fatalf("greeting %q", line)
		}
	}
	ask(t, c, in, "HELO client.example\r\n")
	ask(t, c, in, "MAIL FROM:<>\r\n")
	for _, step := range [][2]string{
		{"RCPT TO:<c@example.net>\r\n", "450 4.2.1 later"},
		{"DATA\r\n", "503 5.5.1 Error: need RCPT command"},
		{"RCPT TO:<b@example.net>\r\n", "250 2.1.5 this one"},
		{"DATA\r\n", "354 End data with <CR><LF>.<CR><LF>"},
		{"x\r\n.\r\n", "554-5.6.0 no"},
	} {
		if reply := ask(t, c, in, step[0]); reply != step[1] {
			t.Errorf("%q: %q, not %q", step[0], reply, step[1])
		}
	}
	if rest, err := io.ReadAll(in); err != nil || string(rest) != "554 5.6.0 never\r\n" {
		t.Errorf("rest %q, %v", rest, err)
	}
	if len(sink.Messages()) != 0 {
		t.Error("a refused message counts as delivered")
	}
	if m := sink.Undelivered(); len(m) != 1 || !m[0].Complete || len(m[0].Rcpts) != 1 {
		t.Errorf("undelivered %+v", m)
	}
}

func TestSinkCutOff(t *testing.T) {
	sink := NewSink(t, Config{Body: &BodyFault{After: 3, Reply: "552 5.3.4 too large\n" + Reset}})
	c, in := dial(t, sink.Addr())
	in.ReadString('\n')
	ask(t, c, in, "HELO client.example\r\n")
	ask(t, c, in, "MAIL FROM:<>\r\n")
	ask(t, c, in, "RCPT TO:<b@example.net>\r\n")
	ask(t, c, in, "DATA\r\n")
	if reply := ask(t, c, in, "abc\r\n"); reply != "552 5.3.4 too large" {
		t.Errorf("reply %q", reply)
	}
	sink.WaitConns(0)
	if m := sink.Undelivered(); len(m) != 1 || m[0].Complete || string(m[0].Raw) != "abc\r\n" {
		t.Errorf("undelivered %+v", m)
	}
}

// envelope opens a connection and sends an envelope, so that a message may follow.
func envelope(t *testing.T, sink *Sink, hello string, rcpts ...string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, in := dial(t, sink.Addr())
	in.ReadString('\n')
	ask(t, c, in, hello+" client.example\r\n")
	for range sink.config.Extensions {
		in.ReadString('\n')
	}
	ask(t, c, in, "MAIL FROM:<a@example.com>\r\n")
	for _, rcpt := range rcpts {
		ask(t, c, in, "RCPT TO:<"+rcpt+">\r\n")
	}
	return c, in
}

func TestSinkChunks(t *testing.T) {
	sink := NewSink(t, Config{Extensions: []string{"CHUNKING"}, Replies: map[string]string{"BDAT 4": "452 4.3.1 full"}})
	c, in := envelope(t, sink, "EHLO", "b@example.net")
	for _, step := range [][2]string{
		{"BDAT 7\r\n.\r\n\x00\r\n.", "250 2.0.0 7 octets received"},
		{"BDAT 0\r\n", "250 2.0.0 0 octets received"},
		{"BDAT 3 LAST\r\n\r\nx", "250 2.0.0 Ok: queued"},
		{"BDAT 6 LAST\r\nQUIT\r\n", "503 5.5.1 Error: no transaction is open that takes a chunk"},
		{"MAIL FROM:<>\r\n", "250 2.1.0 Ok"},
		{"RCPT TO:<b@example.net>\r\n", "250 2.1.5 Ok"},
		{"BDAT 4\r\nabcd", "452 4.3.1 full"},
		{"BDAT 6 LAST\r\nQUIT\r\n", "503 5.5.1 Error: no transaction is open that takes a chunk"},
		{"RSET\r\n", "250 2.0.0 Ok"},
	} {
		if reply := ask(t, c, in, step[0]); reply != step[1] {
			t.Errorf("%q: %q, not %q", step[0], reply, step[1])
		}
	}
	m := sink.Messages()
	if want := ".\r\n\x00\r\n.\r\nx"; len(m) != 1 || string(m[0].Body) != want || m[0].Sum != sha256.Sum256([]byte(want)) || len(m[0].Chunks) != 3 {
		t.Errorf("%+v", m)
	}
	if u := sink.Undelivered(); len(u) != 1 || string(u[0].Raw) != "abcd" {
		t.Errorf("undelivered %+v", u)
	}
	if v := sink.Violations(); v != nil {
		t.Errorf("violations %q", v)
	}
}

// TestSinkChunkCutOff cuts off a chunk, which delivers nothing, and sends invalid BDAT
// commands, which end the connection.
func TestSinkChunkCutOff(t *testing.T) {
	sink := NewSink(t, Config{Extensions: []string{"CHUNKING"}})
	c, _ := envelope(t, sink, "EHLO", "b@example.net")
	io.WriteString(c, "BDAT 5 LAST\r\nabc")
	c.Close()
	sink.WaitConns(0)
	if u := sink.Undelivered(); len(u) != 1 || u[0].Complete || string(u[0].Raw) != "abc" || u[0].Sum != sha256.Sum256([]byte("abc")) {
		t.Errorf("undelivered %+v", u)
	}
	for _, bad := range []string{"BDAT", "BDAT x", "BDAT -1", "BDAT 1 last", "BDAT 1 LAST 2"} {
		c, _ := envelope(t, sink, "EHLO", "b@example.net")
		io.WriteString(c, bad+"\r\n")
		sink.WaitConns(0)
	}
	if v := sink.Violations(); len(v) != 5 {
		t.Errorf("violations %q", v)
	}
}

func TestSinkLMTP(t *testing.T) {
	sink := NewSink(t, Config{LMTP: true, Extensions: []string{}, Replies: map[string]string{
		". RCPT TO:<c@example.net>": "550 5.2.1 disabled",
		".":                         "250 2.0.0 stored",
	}})
	c, in := envelope(t, sink, "LHLO", "b@example.net", "c@example.net")
	ask(t, c, in, "DATA\r\n")
	for i, want := range []string{"250 2.0.0 stored\r\n", "550 5.2.1 disabled\r\n"} {
		if i == 0 {
			io.WriteString(c, "x\r\n.\r\n")
		}
		if line, err := in.ReadString('\n'); line != want {
			t.Errorf("%q, %v", line, err)
		}
	}
	if m := sink.Messages(); len(m) != 1 || len(m[0].Replies) != 2 {
		t.Errorf("%+v", m)
	}
	if reply := ask(t, c, in, "EHLO client.example\r\n"); !strings.HasPrefix(reply, "500") {
		t.Errorf("EHLO: %q", reply)
	}
}

func TestScript(t *testing.T) {
	script := NewScript(t, Parse("", `# two connections
S 220 next.example
C HELO *
S! 250 o
S! k\r\n
C DATA
C [message]
S 250 done
C [connect]
S [close]
`).Steps)
	c, in := dial(t, script.Addr())
	in.ReadString('\n')
	if reply := ask(t, c, in, "HELO client.example\r\n"); reply != "250 ok" {
		t.Errorf("reply %q", reply)
	}
	if reply := ask(t, c, in, "DATA\r\nany\r\n..\r\n.\r\n"); reply != "250 done" {
		t.Errorf("reply %q", reply)
	}
	c.Close()
	_, in = dial(t, script.Addr())
	if line, err := in.ReadString('\n'); err != io.EOF {
		t.Errorf("%q, %v", line, err)
	}
	script.Wait()
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"ab", "ab", true}, {"ab", "abc", false}, {"*", "", true}, {"*", "a", true},
		{"a*", "abc", true}, {"a*", "ba", false}, {"*c", "abc", true}, {"*c", "abcd", false},
		{"a*b*c", "aXbYc", true}, {"a*b*c", "abc", true}, {"a*b*c", "acb", false}, {"ab*ba", "aba", false},
	} {
		if got := Match(tt.pattern, tt.text); got != tt.want {
			t.Errorf("%q, %q: %v", tt.pattern, tt.text, got)
		}
	}
}

func TestExpand(t *testing.T) {
	for in, want := range map[string]string{
		"":                    "",
		`a\r\n\0\x7f\xffb`:    "a\r\n\x00\x7f\xffb",
		`\(a\r\)*3\n`:         "a\ra\ra\r\n",
		`x\(y\)*12z(\(q\)*0)`: "x" + strings.Repeat("y", 12) + "z()",
		`"a\ b" \`:            `"a\ b" \`,
	} {
		if got := Expand(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
