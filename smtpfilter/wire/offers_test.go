package wire

import "testing"

func TestMechanisms(t *testing.T) {
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"PLAIN", "login"}, "PLAIN LOGIN"},
		{[]string{"PLAIN", "plain"}, "PLAIN"},
		{[]string{"SCRAM-SHA-1", "SCRAM-SHA-1-PLUS", "EXTERNAL"}, "SCRAM-SHA-1"},
		{[]string{"EXTERNAL"}, ""},
		{[]string{"A=B", "A/B", "AAAAAAAAAAAAAAAAAAAAA", "X_1"}, "X_1"},
	} {
		if got := mechanisms(tt.names); got != tt.want {
			t.Errorf("mechanisms(%q) = %q, want %q", tt.names, got, tt.want)
		}
	}
}

func TestSmaller(t *testing.T) {
	for _, tt := range [][3]int64{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 6, 5}, {6, 5, 5}} {
		if got := smaller(tt[0], tt[1]); got != tt[2] {
			t.Errorf("smaller(%d, %d) = %d, want %d", tt[0], tt[1], got, tt[2])
		}
	}
}

func TestMaxMessageBytes(t *testing.T) {
	for _, tt := range []struct {
		own  int64
		next Extensions
		want int64
	}{
		{0, nil, 0},
		{10, Extensions{}, 10},
		{10, Extensions{"SIZE": {"5"}}, 5},
		{10, Extensions{"SIZE": {"0"}}, 10},
		{10, Extensions{"SIZE": {"5", "6"}}, 10},
		{0, Extensions{"SIZE": {"5"}}, 5},
	} {
		cfg := Config{Rules: Rules{MaxMessageBytes: tt.own}, Extensions: func(*Conn) Extensions { return tt.next }}.withDefaults()
		c := newConn(&segments{}, &cfg, nil)
		if got := c.MaxMessageBytes(); got != tt.own {
			t.Errorf("before EHLO: %d, want %d", got, tt.own)
		}
		c.welcome()
		if got := c.MaxMessageBytes(); got != tt.want {
			t.Errorf("%d with %v: %d, want %d", tt.own, tt.next, got, tt.want)
		}
	}
}

func BenchmarkWelcome(b *testing.B) {
	next := Extensions{
		"PIPELINING": nil, "SIZE": {"52428800"}, "VRFY": nil, "ETRN": nil, "STARTTLS": nil, "ENHANCEDSTATUSCODES": nil,
		"8BITMIME": nil, "DSN": nil, "SMTPUTF8": nil, "CHUNKING": nil,
	}
	cfg := Config{Hostname: "gate.example", Rules: Rules{MaxMessageBytes: 50 << 20}, Extensions: func(*Conn) Extensions { return next }}.withDefaults()
	c := newConn(&segments{}, &cfg, nil)
	c.cmd = Command{Verb: "EHLO", Arg: "client.example"}
	b.ReportAllocs()
	for b.Loop() {
		c.out = c.welcome().Append(c.out[:0])
	}
}

func BenchmarkCommand(b *testing.B) {
	t := terms{offered: extSize | ext8BitMIME | extDSN}
	b.ReportAllocs()
	for b.Loop() {
		parseCommand("MAIL FROM:<user@example.com> SIZE=4096 BODY=8BITMIME", t)
		parseCommand("RCPT TO:<user@example.net>", t)
	}
}
