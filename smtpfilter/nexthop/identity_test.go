package nexthop

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/smtptest"
)

func TestXclient(t *testing.T) {
	all := strings.Fields("NAME ADDR PROTO HELO REVERSE_NAME PORT LOGIN DESTADDR DESTPORT") // Postfix 3.7
	local := netip.MustParseAddrPort("[::ffff:198.51.100.1]:25")
	for _, c := range []struct {
		name    string
		offered []string
		client  Client
		want    []string
	}{
		{"none of ours offered", []string{"COLOUR"}, testClient, nil},
		{"lower case", []string{"addr"}, testClient, []string{"XCLIENT ADDR=192.0.2.7"}},
		{"IPv4 in IPv6", strings.Fields("DESTADDR DESTPORT"), Client{Local: local}, []string{"XCLIENT DESTADDR=198.51.100.1 DESTPORT=25"}},
		{"unknown port", strings.Fields("ADDR PORT"), stranger, []string{"XCLIENT ADDR=192.0.2.1 PORT=[UNAVAILABLE]"}},
		{"xtext", []string{"LOGIN"}, Client{Login: "j\u00f6 a+b=c@example.com"}, []string{"XCLIENT LOGIN=j+C3+B6+20a+2Bb+3Dc@example.com"}},
		{"control bytes", []string{"LOGIN"}, Client{Login: "joe\r\nMAIL"}, []string{"XCLIENT LOGIN=[UNAVAILABLE]"}},
		{"too long", []string{"LOGIN"}, Client{Login: strings.Repeat("x", 256)}, []string{"XCLIENT LOGIN=[UNAVAILABLE]"}},
		{"bad protocol", strings.Fields("PROTO ADDR"), Client{Proto: "LMTP"}, []string{"XCLIENT ADDR=[UNAVAILABLE]"}},
		{"split, the address and the login last", all,
			Client{Name: strings.Repeat("n", 255), Addr: testClient.Addr, Proto: "SMTP", Helo: strings.Repeat("h", 255), Login: strings.Repeat("l", 250), Local: local},
			[]string{
				"XCLIENT HELO=" + strings.Repeat("h", 255),
				"XCLIENT NAME=" + strings.Repeat("n", 255) + " PORT=4711 PROTO=SMTP DESTADDR=198.51.100.1 DESTPORT=25",
				"XCLIENT ADDR=192.0.2.7 LOGIN=" + strings.Repeat("l", 250),
			}},
	} {
		got := xclientCommands(c.offered, &identity{attributes: xclientAttributes(&c.client)})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
		for _, command := range got {
			if len(command)+2 > 512 {
				t.Errorf("%s: %d bytes", c.name, len(command)+2)
			}
		}
	}
}

// TestEachMailIsItsClients sends mail of many clients at once. The next hop must receive
// each with its own client, whatever its reply to a second XCLIENT is.
func TestEachMailIsItsClients(t *testing.T) {
	for name, config := range map[string]smtptest.Config{
		"one XCLIENT a connection": {OneXCLIENT: true},
		"any number":               {},
		"some refused": {Answer: func(c smtptest.Command) string {
			if c.Verb() == "XCLIENT" && c.Conn%3 == 2 && c.Flight%2 == 0 {
				return "501 5.5.4 no"
			}
			return ""
		}},
	} {
		t.Run(name, func(t *testing.T) {
			checkGoroutines(t)
			config.Extensions = []string{"PIPELINING", "XCLIENT NAME ADDR PORT HELO", "XFORWARD IDENT"}
			sink := smtptest.NewSink(t, config)
			hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true, MaxIdle: 4})
			var group sync.WaitGroup
			for g := range 4 {
				group.Go(func() {
					for i := range 40 {
						sendAs(t, hop, g*100+i%7)
					}
				})
			}
			group.Wait()
			messages := sink.Messages()
			for _, m := range messages {
				if client, _, _ := strings.Cut(m.Mail, "@"); !strings.Contains(m.XCLIENT, "HELO="+strings.TrimPrefix(client, "MAIL FROM:<")+".example") {
					t.Fatalf("%s on the connection of %q", m.Mail, m.XCLIENT)
				}
			}
			if config.Answer == nil && len(messages) != 160 {
				t.Errorf("%d messages", len(messages))
			}
			if v := sink.Violations(); v != nil {
				t.Error(v)
			}
		})
	}
}

// sendAs sends a message, or drops one, as client n.
func sendAs(t *testing.T, hop *SMTP, n int) {
	helo := fmt.Sprintf("c%d.example", n)
	client := Client{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, 100, byte(n)}), uint16(n+1)), Helo: helo}
	ctx := context.Background()
	tx := hop.Begin(Envelope{Client: client, From: fmt.Sprintf("c%d@example.com", n), ID: "x"})
	defer tx.Abort()
	reply, err := tx.Rcpt(ctx, "b@example.net", nil)
	if errors.Is(err, errXCLIENT) {
		return
	}
	if err != nil || !reply.Positive() {
		t.Errorf("%v, %v", reply, err)
		return
	}
	m, _, err := tx.Data(ctx, Stuffed)
	if err != nil {
		t.Error(err)
		return
	}
	if reply, err := m.Commit(ctx); err != nil || !reply.Positive() {
		t.Errorf("%v, %v", reply, err)
	}
}

// TestLogged: XFORWARD tells of the client that the log is to have, XCLIENT of the
// one who is served. A name is looked up once.
// TestNameOnceTold sends mail to a server that takes NAME in the second XCLIENT of a
// connection only: what that one said still holds for a client whose name is to be looked up.
func TestNameOnceTold(t *testing.T) {
	var mu sync.Mutex
	told := map[int][]string{} // by connection
	var got []string
	sink := smtptest.NewSink(t, smtptest.Config{Answer: func(c smtptest.Command) string {
		mu.Lock()
		defer mu.Unlock()
		switch c.Verb() {
		case "EHLO":
			if len(told[c.Conn]) == 1 {
				return "250-sink.example\n250 XCLIENT PROTO NAME"
			}
			return "250-sink.example\n250 XCLIENT PROTO"
		case "XCLIENT":
			told[c.Conn] = append(told[c.Conn], strings.TrimPrefix(c.Line, "XCLIENT "))
		case "MAIL":
			got = append(got, strings.Join(told[c.Conn], ", "))
		}
		return ""
	}})
	hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: true, Identity: IdentityXCLIENT})
	for _, client := range []Client{
		{Proto: "SMTP"},
		{Proto: "ESMTP"},
		{Proto: "ESMTP", LookupName: func(context.Context) string { return "named.example" }},
	} {
		tx := hop.Begin(Envelope{Client: client, ID: "x"})
		if reply, err := tx.Rcpt(t.Context(), "b@example.net", nil); err != nil || !reply.Positive() {
			t.Fatal(reply, err)
		}
		m, _, err := tx.Data(t.Context(), Stuffed)
		if err != nil {
			t.Fatal(err)
		}
		if reply, err := m.Commit(t.Context()); err != nil || !reply.Positive() {
			t.Fatal(reply, err)
		}
	}
	want := []string{"PROTO=SMTP", "PROTO=SMTP, NAME=[UNAVAILABLE] PROTO=ESMTP", "PROTO=ESMTP"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestLogged(t *testing.T) {
	for _, c := range []struct {
		extensions []string
		lookups    int
		want       []string // commands before MAIL
	}{
		{[]string{"XFORWARD NAME ADDR"}, 0, []string{"XFORWARD NAME=logged.example", "XFORWARD ADDR=192.0.2.9"}},
		{[]string{"XCLIENT NAME ADDR", "XFORWARD NAME ADDR IDENT"}, 1, []string{
			"XCLIENT ADDR=192.0.2.7 NAME=looked-up.example", "EHLO gate.example",
			"XFORWARD NAME=logged.example IDENT=x", "XFORWARD ADDR=192.0.2.9"}},
	} {
		sink := smtptest.NewSink(t, smtptest.Config{Extensions: c.extensions})
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr()})
		lookups := 0
		tx := hop.Begin(Envelope{
			Client: Client{Addr: testClient.Addr, LookupName: func(context.Context) string { lookups++; return "looked-up.example" }},
			Logged: &Client{Addr: netip.MustParseAddrPort("192.0.2.9:9"), Name: "logged.example"},
			From:   "a@example.com", ID: "x",
		})
		if _, err := tx.Rcpt(context.Background(), "b@example.net", nil); err != nil {
			t.Fatal(err)
		}
		tx.Abort()
		var got []string
		for _, command := range sink.Commands()[1:] {
			if command.Verb() == "MAIL" {
				break
			}
			got = append(got, command.Line)
		}
		if !slices.Equal(got, c.want) || lookups != c.lookups {
			t.Errorf("%d lookups, said %q", lookups, got)
		}
	}
}

// TestProxyHeaders compares the headers with the bytes of HAProxy's
// proxy-protocol.txt.
func TestProxyHeaders(t *testing.T) {
	ap := netip.MustParseAddrPort
	for _, c := range []struct {
		client *Client
		v1     string
		v2     string // behind the signature
	}{
		{nil, "PROXY UNKNOWN\r\n", "\x20\x00\x00\x00"},
		{&Client{Addr: ap("192.0.2.7:4711"), Local: ap("198.51.100.1:25")},
			"PROXY TCP4 192.0.2.7 198.51.100.1 4711 25\r\n", "\x21\x11\x00\x0c\xc0\x00\x02\x07\xc6\x33\x64\x01\x12\x67\x00\x19"},
		{&Client{Addr: ap("[::ffff:192.0.2.7]:4711"), Local: ap("[::ffff:198.51.100.1]:25")},
			"PROXY TCP4 192.0.2.7 198.51.100.1 4711 25\r\n", "\x21\x11\x00\x0c\xc0\x00\x02\x07\xc6\x33\x64\x01\x12\x67\x00\x19"},
		{&Client{Addr: ap("[2001:db8::7%eth0]:1"), Local: ap("[2001:db8::1]:587")},
			"PROXY TCP6 2001:db8::7 2001:db8::1 1 587\r\n",
			"\x21\x21\x00\x24\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x07\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01\x00\x01\x02\x4b"},
		{&Client{Addr: ap("[2001:db8::7]:1"), Local: ap("198.51.100.1:465")},
			"PROXY TCP6 2001:db8::7 :: 1 465\r\n",
			"\x21\x21\x00\x24\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x07" + strings.Repeat("\x00", 16) + "\x00\x01\x01\xd1"},
		{&Client{}, "PROXY TCP4 0.0.0.0 0.0.0.0 25 25\r\n", "\x21\x11\x00\x0c" + strings.Repeat("\x00", 8) + "\x00\x19\x00\x19"},
	} {
		e := endpointsOf(c.client)
		for version, want := range map[int]string{1: c.v1, 2: "\r\n\r\n\x00\r\nQUIT\n" + c.v2} {
			if got, err := proxyHeader(version, e).Format(); err != nil || string(got) != want {
				t.Errorf("%+v: %q, %v, not %q", c.client, got, err, want)
			}
		}
	}
}
