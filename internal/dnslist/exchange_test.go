package dnslist

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"spamgate/smtpfilter/clientname/dnstest"
)

// forged returns the reply with another address, as a forger wants it.
func forged(reply []byte) []byte {
	m := new(dns.Msg)
	if m.Unpack(reply) != nil {
		return nil
	}
	m.Rcode = dns.RcodeSuccess
	rr, _ := dns.NewRR(m.Question[0].Name + " 3600 IN A 127.0.0.66")
	m.Answer, m.Ns = []dns.RR{rr}, nil
	wire, _ := m.Pack()
	return wire
}

// withQuestion returns the reply with another question.
func withQuestion(reply []byte, name string, kind uint16) []byte {
	m := new(dns.Msg)
	m.Unpack(reply)
	m.Question[0] = dns.Question{Name: name, Qtype: kind, Qclass: dns.ClassINET}
	wire, _ := m.Pack()
	return wire
}

// questionOf returns the name that a reply repeats.
func questionOf(reply []byte) string {
	m := new(dns.Msg)
	m.Unpack(reply)
	return m.Question[0].Name
}

// withByte returns a copy of the reply with one byte changed.
func withByte(reply []byte, pos int, change func(byte) byte) []byte {
	changed := bytes.Clone(reply)
	changed[pos] = change(changed[pos])
	return changed
}

// flood returns many copies of a message, and then others.
func flood(n int, message []byte, then ...[]byte) [][]byte {
	return append(slices.Repeat([][]byte{message}, n), then...)
}

// TestLies has a resolver, or somebody who forges its packets, lie over UDP. Over TCP it
// tells the truth, unless the case says otherwise: the name is listed with 127.0.0.2.
func TestLies(t *testing.T) {
	flip := func(b byte) byte { return ^b }
	const listed = "listed listed.example 127.0.0.2"
	for _, c := range []struct {
		name string
		lie  func(reply []byte) [][]byte
		want string
		tcp  bool // TCP was asked
		wait time.Duration
	}{
		{"truth", func(r []byte) [][]byte { return [][]byte{r} }, listed, false, 0},
		{"another id first", func(r []byte) [][]byte { return [][]byte{withByte(forged(r), 1, flip), r} }, listed, false, 0},
		{"another question first", func(r []byte) [][]byte {
			return [][]byte{withQuestion(forged(r), "listed.example.other.test.", dns.TypeA), withQuestion(forged(r), questionOf(r), dns.TypeAAAA), r}
		}, listed, false, 0},
		{"no question", func(r []byte) [][]byte {
			m := new(dns.Msg)
			m.Unpack(forged(r))
			m.Question = nil
			wire, _ := m.Pack()
			return [][]byte{wire, r}
		}, listed, false, 0},
		{"a query first", func(r []byte) [][]byte {
			return [][]byte{withByte(forged(r), 2, func(b byte) byte { return b &^ 0x80 }), r}
		}, listed, false, 0},
		{"another opcode first", func(r []byte) [][]byte {
			return [][]byte{withByte(forged(r), 2, func(b byte) byte { return b | 0x28 }), r}
		}, listed, false, 0},
		{"the question in lower case", func(r []byte) [][]byte {
			return [][]byte{withQuestion(forged(r), strings.ToLower(questionOf(r)), dns.TypeA)}
		}, listed, true, 0},
		{"garbage first", func(r []byte) [][]byte {
			return [][]byte{{}, {1}, bytes.Repeat([]byte{0xc0}, 100), r[:len(r)-1], r}
		}, listed, false, 0},
		{"truncated", func(r []byte) [][]byte {
			return [][]byte{withByte(forged(r), 2, func(b byte) byte { return b | 0x02 })}
		}, listed, true, 0},
		{"truncated within a record", func(r []byte) [][]byte {
			return [][]byte{withByte(r, 2, func(b byte) byte { return b | 0x02 })[:len(r)-2]}
		}, listed, true, 0},
		{"a flood of other ids", func(r []byte) [][]byte { return flood(1000, withByte(forged(r), 1, flip), forged(r)) }, listed, true, 0},
		{"a stall", func(r []byte) [][]byte { return nil }, "unknown: timeout", false, DefaultTimeout},
		{"another name's records", func(r []byte) [][]byte {
			m := new(dns.Msg)
			m.Unpack(r)
			for _, rr := range m.Answer {
				rr.Header().Name = "other.example.dbl.test."
			}
			wire, _ := m.Pack()
			return [][]byte{wire}
		}, "not listed", false, 0},
		{"a referral", func(r []byte) [][]byte {
			m := new(dns.Msg)
			m.Unpack(r)
			ns, _ := dns.NewRR("test. 60 IN NS ns.test.")
			m.Answer, m.Ns, m.RecursionAvailable = nil, []dns.RR{ns}, false
			wire, _ := m.Pack()
			return [][]byte{wire}
		}, "unknown: servfail", false, 0},
		{"REFUSED", func(r []byte) [][]byte {
			return [][]byte{withByte(r, 3, func(b byte) byte { return b&0xf0 | dns.RcodeRefused })}
		}, "unknown: servfail", false, 0},
		{"NXDOMAIN with an address", func(r []byte) [][]byte {
			return [][]byte{withByte(r, 3, func(b byte) byte { return b&0xf0 | dns.RcodeNameError })}
		}, "not listed", false, 0},
		{"addresses without end", func(r []byte) [][]byte {
			m := new(dns.Msg)
			m.Unpack(r)
			rr := m.Answer[0]
			for range 60 {
				m.Answer = append(m.Answer, rr)
			}
			wire, _ := m.Pack()
			return [][]byte{wire}
		}, listed, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.list("listed.example.dbl.test", "127.0.0.2", 60)
				w.Behave(dnstest.Behavior{Lie: func(reply []byte, network string) [][]byte {
					if network == "tcp" || binary.BigEndian.Uint16(reply[6:]) == 0 { // the text, which does not exist
						return [][]byte{reply}
					}
					return c.lie(reply)
				}})
				w.wantWait(c.wait, func() {
					if got := say(w.result("listed.example")); got != c.want {
						t.Errorf("got %s, want %s", got, c.want)
					}
				})
				if tcp := slices.Contains(w.Asked()[w.seen:], "A listed.example.dbl.test. tcp"); tcp != c.tcp {
					t.Errorf("asked %q", w.Asked()[w.seen:])
				}
			}, List{Name: "dbl", Zone: zone, Exact: true})
		})
	}
}

// TestLiesOverTCP has a resolver truncate all answers over UDP and fail over TCP.
func TestLiesOverTCP(t *testing.T) {
	for _, c := range []struct {
		name string
		lie  func(reply []byte) [][]byte
		want string
		wait time.Duration
	}{
		{"truth", func(r []byte) [][]byte { return [][]byte{r} }, "listed listed.example 127.0.0.2", 0},
		{"closes", func(r []byte) [][]byte { return [][]byte{nil} }, "unknown: network", 0},
		{"garbage", func(r []byte) [][]byte { return [][]byte{{1, 2, 3}} }, "unknown: servfail", 0},
		{"empty", func(r []byte) [][]byte { return [][]byte{{}} }, "unknown: servfail", 0},
		{"another id", func(r []byte) [][]byte { return [][]byte{withByte(r, 0, func(b byte) byte { return ^b })} }, "unknown: servfail", 0},
		{"lower case", func(r []byte) [][]byte { return [][]byte{withQuestion(r, strings.ToLower(questionOf(r)), dns.TypeA)} },
			"listed listed.example 127.0.0.2", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.list("listed.example.dbl.test", "127.0.0.2", 60)
				w.Behave(dnstest.Behavior{Truncate: true, Lie: func(reply []byte, network string) [][]byte {
					if network == "tcp" && binary.BigEndian.Uint16(reply[6:]) > 0 {
						return c.lie(reply)
					}
					return [][]byte{reply}
				}})
				w.wantWait(c.wait, func() {
					if got := say(w.result("listed.example")); got != c.want {
						t.Errorf("got %s, want %s", got, c.want)
					}
				})
			}, List{Name: "dbl", Zone: zone, Exact: true})
		})
	}
}

// TestOldServer: a resolver that does not know EDNS is asked without.
func TestOldServer(t *testing.T) {
	for _, repeat := range []bool{true, false} {
		inBubble(t, func(w *world) {
			w.list("listed.example.dbl.test", "127.0.0.2", 60)
			var asked atomic.Int32
			w.Behave(dnstest.Behavior{Lie: func(reply []byte, _ string) [][]byte {
				if asked.Add(1)%2 == 0 { // the second one is without EDNS
					return [][]byte{reply}
				}
				m := new(dns.Msg)
				m.Unpack(reply)
				m.Rcode, m.Answer, m.Ns = dns.RcodeFormatError, nil, nil
				if !repeat {
					m.Question = nil
				}
				wire, _ := m.Pack()
				return [][]byte{wire}
			}})
			w.want("listed.example", "listed listed.example 127.0.0.2")
		}, List{Name: "dbl", Zone: zone, Exact: true})
	}
}

// TestLifetimes: answers are cached for their TTL, within bounds.
func TestLifetimes(t *testing.T) {
	for _, c := range []struct {
		name  string
		zone  func(w *world)
		want  string
		lasts time.Duration
	}{
		{"listed", func(w *world) { w.list("d.example.dbl.test", "127.0.0.2", 90) }, "listed d.example 127.0.0.2", 90 * time.Second},
		{"no TTL", func(w *world) { w.list("d.example.dbl.test", "127.0.0.2", 0) }, "listed d.example 127.0.0.2", minTTL},
		{"a week", func(w *world) { w.list("d.example.dbl.test", "127.0.0.2", 604800) }, "listed d.example 127.0.0.2", maxTTL},
		{"the alias's", func(w *world) {
			w.AddAlias("d.example.dbl.test", "x.dbl.test", 40)
			w.list("x.dbl.test", "127.0.0.2", 90)
		}, "listed d.example 127.0.0.2", 40 * time.Second},
		{"not listed", func(w *world) { w.Behave(dnstest.Behavior{Negative: 120}) }, "not listed", 2 * time.Minute},
		{"not listed, no SOA", func(w *world) {
			w.Behave(dnstest.Behavior{Lie: func(reply []byte, _ string) [][]byte {
				m := new(dns.Msg)
				m.Unpack(reply)
				m.Ns = nil
				wire, _ := m.Pack()
				return [][]byte{wire}
			}})
		}, "not listed", defaultTTL},
		{"a failure", func(w *world) { w.Behave(dnstest.Behavior{Fail: true}) }, "unknown: servfail", failureTTL},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				c.zone(w)
				asked := func() (n int) {
					for _, q := range w.Asked() {
						if q == "A d.example.dbl.test. udp" {
							n++
						}
					}
					return n
				}
				w.want("d.example", c.want)
				first := asked()
				time.Sleep(c.lasts - 1)
				w.want("d.example", c.want)
				if again := asked() - first; first == 0 || again != 0 {
					t.Errorf("asked %d questions, and %d before the answer was old", first, again)
				}
				time.Sleep(time.Nanosecond)
				w.want("d.example", c.want)
				if again := asked() - first; again != first {
					t.Errorf("asked %d questions, and %d when the answer was old", first, again)
				}
			}, List{Name: "dbl", Zone: zone, Exact: true})
		})
	}
}

// FuzzAnswer reads whatever a resolver sends.
func FuzzAnswer(f *testing.F) {
	const name = "listed.example.dbl.test"
	for _, text := range []string{"A 127.0.0.2", "TXT \"a \\007 \\\"b\\\"\"", "CNAME listed.example.dbl.test."} {
		m := new(dns.Msg)
		m.SetQuestion(name+".", dns.TypeA)
		m.Response = true
		rr, err := dns.NewRR(name + ". 60 IN " + text)
		if err != nil {
			f.Fatal(err)
		}
		m.Answer = []dns.RR{rr}
		wire, _ := m.Pack()
		f.Add(wire)
		f.Add(withByte(wire, 3, func(b byte) byte { return dns.RcodeNameError }))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		m := new(dns.Msg)
		if m.Unpack(wire) != nil {
			return
		}
		for _, kind := range []uint16{dns.TypeA, dns.TypeTXT} {
			a := readAnswer(m, name, kind)
			if a.ttl < minTTL || a.ttl > maxTTL || len(a.addrs) > maxAddrs || len(a.text) > MaxReason {
				t.Errorf("%+v", a)
			}
			if strings.ContainsFunc(a.text, func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("text %q", a.text)
			}
			if kind == dns.TypeA && slices.ContainsFunc(a.addrs, func(x netip.Addr) bool { return !x.Is4() }) {
				t.Errorf("%v", a.addrs)
			}
		}
	})
}
