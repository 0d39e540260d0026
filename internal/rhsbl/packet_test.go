package rhsbl

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// readPackets returns the packets of testdata/packets.txt, with what is wanted of each.
func readPackets(t testing.TB) (packets [][]byte, wants, lines []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/packets.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		packet, want, _ := strings.Cut(line, "=>")
		packets = append(packets, parsePacket(t, packet))
		wants, lines = append(wants, strings.TrimSpace(want)), append(lines, line)
	}
	return packets, wants, lines
}

// parsePacket reads words of hexadecimal digits, and names in quotes: each a label for each
// word between dots, with the zero label at the end if there is a dot.
func parsePacket(t testing.TB, text string) []byte {
	t.Helper()
	var packet []byte
	for _, word := range strings.Fields(text) {
		if name, ok := strings.CutPrefix(word, `"`); ok {
			name = strings.TrimSuffix(name, `"`)
			if before, after, ok := strings.Cut(name, "~"); ok { // a~63 is 63 times a
				var n int
				fmt.Sscanf(after, "%d", &n)
				_, rest, _ := strings.Cut(after, ".")
				name = strings.Repeat(before, n) + "." + rest
			}
			for label := range strings.SplitSeq(name, ".") {
				packet = append(append(packet, byte(len(label))), label...)
			}
			continue
		}
		b, err := hex.DecodeString(word)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		packet = append(packet, b...)
	}
	return packet
}

// describe says what is in an answer: "-" for none.
func describe(packet []byte) string {
	if packet == nil {
		return "-"
	}
	m := new(dns.Msg)
	if err := m.Unpack(packet); err != nil {
		return err.Error()
	}
	parts := []string{fmt.Sprintf("%04x", m.Id), said(m)}
	if m.Opcode != dns.OpcodeQuery {
		parts[1] = dns.OpcodeToString[m.Opcode] + " " + parts[1]
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{{"aa", m.Authoritative}, {"tc", m.Truncated}, {"rd", m.RecursionDesired}, {"ra", m.RecursionAvailable}} {
		if flag.set {
			parts = append(parts, flag.name)
		}
	}
	if len(m.Question) == 0 {
		parts = append(parts, "header")
	}
	if opt := m.IsEdns0(); opt != nil {
		parts = append(parts, fmt.Sprintf("edns%d", opt.UDPSize()))
		if opt.Do() {
			parts = append(parts, "do")
		}
	}
	return strings.Join(parts, " ")
}

// packetServer is asked by the tests of packets.
func packetServer(t testing.TB) *Server {
	lists, _ := openStore(t, block("blocked", "spam.example  # "+strings.Repeat("bulk mail ", 20)+"\n"))
	settings := zonesOf()
	settings.Contact = strings.Repeat("postmaster@example.org ", 16)
	return newServer(t, lists, settings)
}

// TestPackets answers the packets of testdata/packets.txt.
func TestPackets(t *testing.T) {
	s := packetServer(t)
	packets, wants, lines := readPackets(t)
	for i, packet := range packets {
		if got := describe(s.answer(packet, local, true, nil)); got != wants[i] {
			t.Errorf("%s\ngot %s", lines[i], got)
		}
	}
}

// TestLetters: a resolver that mixes upper and lower case finds its own letters again, and
// the name in the answer is that of the question.
func TestLetters(t *testing.T) {
	s := packetServer(t)
	m := newQuestion("sPaM.eXaMpLe.Bl.TeSt", dns.TypeA)
	question, _ := m.Pack()
	answer := s.answer(question, local, true, nil)
	if !bytes.Equal(question[headerSize:], answer[headerSize:len(question)]) {
		t.Errorf("%q, want %q", answer[headerSize:], question[headerSize:])
	}
	r := new(dns.Msg)
	if err := r.Unpack(answer); err != nil || r.Answer[0].Header().Name != m.Question[0].Name {
		t.Error(r, err)
	}
}

// TestTooLong: what does not fit over UDP is asked for over TCP.
func TestTooLong(t *testing.T) {
	s := packetServer(t)
	for _, tt := range []struct {
		size uint16
		udp  bool
		fits bool
	}{{0, true, false}, {100, true, false}, {512, true, false}, {1232, true, true}, {4096, true, true}, {0, false, true}} {
		m := newQuestion(strings.Repeat("a.", 50)+"spam.example.bl.test", dns.TypeTXT)
		if tt.size > 0 {
			m.SetEdns0(tt.size, false)
		}
		question, _ := m.Pack()
		answer := s.answer(question, local, tt.udp, nil)
		r := new(dns.Msg)
		if err := r.Unpack(answer); err != nil || r.Truncated == tt.fits || (len(r.Answer) == 1) != tt.fits {
			t.Errorf("size %d, UDP %v: %v, %v", tt.size, tt.udp, r, err)
		}
		if limit := max(512, int(min(tt.size, 1232))); tt.udp && len(answer) > limit {
			t.Errorf("size %d: %d bytes", tt.size, len(answer))
		}
	}
}

// TestClients: who may not ask is refused, in IPv4 and in IPv6 that means it.
func TestClients(t *testing.T) {
	lists, _ := openStore(t, block("blocked", "spam.example\n"))
	settings := zonesOf()
	settings.AllowClients = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/25"), netip.MustParsePrefix("2001:db8::/48")}
	s := newServer(t, lists, settings)
	question, _ := newQuestion("spam.example.bl.test", dns.TypeA).Pack()
	for client, want := range map[string]string{
		"192.0.2.1":          "NOERROR 127.0.0.2",
		"::ffff:192.0.2.1":   "NOERROR 127.0.0.2",
		"192.0.2.128":        "REFUSED",
		"::ffff:192.0.2.128": "REFUSED",
		"2001:db8::1":        "NOERROR 127.0.0.2",
		"2001:db8:1::1":      "REFUSED",
		"127.0.0.1":          "REFUSED",
	} {
		r := new(dns.Msg)
		if err := r.Unpack(s.answer(question, netip.MustParseAddr(client), true, nil)); err != nil || said(r) != want {
			t.Errorf("%s: %s, %v", client, said(r), err)
		}
	}
}

// FuzzAnswer: whatever comes, an answer is one to the question, and fits.
func FuzzAnswer(f *testing.F) {
	s := packetServer(f)
	packets, _, _ := readPackets(f)
	for _, packet := range packets {
		f.Add(packet, true)
		f.Add(packet, false)
	}
	f.Fuzz(func(t *testing.T, question []byte, udp bool) {
		answer := s.answer(question, local, udp, make([]byte, 0, 100))
		if again := s.answer(question, local, udp, nil); !bytes.Equal(answer, again) {
			t.Fatalf("%x, then %x", answer, again)
		}
		if len(question) < headerSize || question[2]&0x80 != 0 {
			if answer != nil {
				t.Fatalf("answered by %x", answer)
			}
			return
		}
		r := new(dns.Msg)
		if err := r.Unpack(answer); err != nil || !r.Response || r.RecursionAvailable || !bytes.Equal(answer[:2], question[:2]) {
			t.Fatalf("%x: %v", answer, err)
		}
		opt := r.IsEdns0()
		if limit := 512; udp && opt == nil && len(answer) > limit || len(answer) > maxUDPSize && udp {
			t.Fatalf("%d bytes", len(answer))
		}
		if len(r.Question) == 0 {
			if len(answer) != headerSize {
				t.Fatalf("%x", answer)
			}
			return
		}
		if q := new(dns.Msg); q.Unpack(question) != nil || len(q.Question) != 1 || q.Question[0] != r.Question[0] {
			t.Fatalf("%v\nis not for %v", r, q)
		}
	})
}
