package proof

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/clientname/dnstest"
)

// inBubble runs a test whose clock stands still while nothing waits for it. At its end no
// goroutine may remain.
func inBubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newWorld(t)) })
}

// spf asks for the proof of ann@partner.example for a client.
func (w *world) spf(client string) verdict.Proof {
	m := &verdict.Message{Client: netip.AddrPortFrom(netip.MustParseAddr(client), 25), ReversePath: "ann@partner.example"}
	return w.proofs.Message().Prove(w.Context(), m, verdict.Envelope, address(w, "ann@partner.example"), verdict.SPF)
}

// took fails the test if a function does not take a time.
func (w *world) took(want time.Duration, f func()) {
	w.Helper()
	begun := time.Now()
	f()
	if got := time.Since(begun); got != want {
		w.Errorf("took %v, want %v", got, want)
	}
}

// silent never answers.
func silent([]byte, string) [][]byte { return nil }

// changed returns a Lie that changes replies.
func changed(f func(m *dns.Msg)) func([]byte, string) [][]byte {
	return func(reply []byte, _ string) [][]byte {
		m := new(dns.Msg)
		m.Unpack(reply)
		f(m)
		wire, _ := m.Pack()
		return [][]byte{wire}
	}
}

// TestLiars asks resolvers that stall, fail or lie, for SPF and for the key of a signature.
func TestLiars(t *testing.T) {
	const none = "not proven: spf: none for 198.51.100.1"
	const noKey = "not proven: dkim: the signature of partner.example is not valid: "
	unknown := func(why string) (spf, dkim string) {
		why = "no answer from the resolver (" + why + ")"
		return "no answer: spf: temperror for 198.51.100.1: " + why,
			"no answer: dkim: the signature of partner.example cannot be verified now: key unavailable: " + why
	}
	stalls, stallsKey := unknown("timeout")
	fails, failsKey := unknown("servfail")
	refuses, refusesKey := unknown("network")
	for _, c := range []struct {
		name      string
		behavior  dnstest.Behavior
		zone      func(w *world)
		spf, dkim string
		wait      time.Duration
	}{
		{"stalls", dnstest.Behavior{Lie: silent}, nil, stalls, stallsKey, spfTimeout},
		{"stalls over TCP", dnstest.Behavior{Truncate: true, Lie: func(reply []byte, network string) [][]byte {
			if network == "tcp" {
				time.Sleep(time.Hour)
			}
			return [][]byte{reply}
		}}, nil, stalls, stallsKey, spfTimeout},
		{"fails", dnstest.Behavior{Fail: true}, nil, fails, failsKey, 0},
		{"refuses", dnstest.Behavior{Refuse: true}, nil, refuses, refusesKey, 0},
		{"has nothing", dnstest.Behavior{}, func(w *world) { w.Clear() }, none, noKey + "no key for signature: no such record", 0},
		{"answers about another name", dnstest.Behavior{Lie: changed(func(m *dns.Msg) {
			for _, rr := range m.Answer {
				rr.Header().Name = "other.example."
			}
		})}, nil, none, noKey + "no key for signature: no such record", 0},
		{"has aliases without end", dnstest.Behavior{}, func(w *world) {
			w.Clear()
			w.AddAlias("partner.example", "a.partner.example", 60)
			w.AddAlias("a.partner.example", "partner.example", 60)
			w.AddAlias("s._domainkey.partner.example", "s._domainkey.partner.example", 60)
		}, none, noKey + "no key for signature: no such record", 0},
		{"has a huge text", dnstest.Behavior{Truncate: true}, func(w *world) {
			w.Clear()
			long := strings.Repeat(" ip4:198.51.100.1", 3500)
			w.AddText("partner.example", "v=spf1"+long, 60)
			w.AddText("s._domainkey.partner.example", record(rsaKey())+"; n="+long, 60)
		}, none, noKey + "no valid key found", 0},
		{"has many texts", dnstest.Behavior{Truncate: true}, func(w *world) {
			for range 500 {
				w.AddText("partner.example", "x=y", 60)
				w.AddText("s._domainkey.partner.example", "x=y", 60)
			}
		}, "proven: spf: pass for 198.51.100.1", noKey + "multiple TXT records found for key", 0},
		{"has two records", dnstest.Behavior{}, func(w *world) {
			w.AddText("partner.example", "v=spf1 +all", 60)
			w.AddText("s._domainkey.partner.example", record(rsaKey()), 60)
		}, "not proven: spf: permerror for 198.51.100.1: multiple matching DNS records", noKey + "multiple TXT records found for key", 0},
		{"answers late, but in time", dnstest.Behavior{Delay: 2 * time.Second}, nil,
			"proven: spf: pass for 198.51.100.1", "proven: dkim: a valid signature of partner.example", 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			message := signed(t, letter, "partner.example", rsaKey())
			inBubble(t, func(w *world) {
				w.AddText("partner.example", "v=spf1 ip4:198.51.100.1 -all", 60)
				w.publish("partner.example", rsaKey())
				if c.zone != nil {
					c.zone(w)
				}
				w.Behave(c.behavior)
				w.took(c.wait, func() {
					if got := say(w.spf("198.51.100.1")); got != c.spf {
						t.Errorf("%s, want %s", got, c.spf)
					}
				})
				w.took(c.wait, func() {
					if _, got := w.verifyAll(message, "ann@partner.example", 100); say(got) != c.dkim {
						t.Errorf("%s, want %s", say(got), c.dkim)
					}
				})
			})
		})
	}
}

// TestExpensiveRecords has records that want more questions or more time than a message has.
func TestExpensiveRecords(t *testing.T) {
	for _, c := range []struct {
		name  string
		zone  func(w *world)
		delay time.Duration
		want  string
		wait  time.Duration
		most  int // questions
	}{
		{"eleven includes", func(w *world) {
			for i := range 12 {
				w.AddText(fmt.Sprintf("i%d.example", i), fmt.Sprintf("v=spf1 include:i%d.example ?all", i+1), 60)
			}
			w.AddText("partner.example", "v=spf1 include:i0.example +all", 60)
		}, 0, "not proven: spf: permerror for 198.51.100.1: lookup limit reached", 0, 11},
		{"includes itself", func(w *world) { w.AddText("partner.example", "v=spf1 include:partner.example +all", 60) }, 0,
			"not proven: spf: permerror for 198.51.100.1: lookup limit reached", 0, 11},
		{"names that do not exist", func(w *world) { w.AddText("partner.example", "v=spf1 a:a.example a:b.example a:c.example +all", 60) }, 0,
			"not proven: spf: permerror for 198.51.100.1: void lookup limit reached", 0, 4},
		{"servers without end", func(w *world) {
			terms := ""
			for i := range 9 {
				terms += fmt.Sprintf(" mx:m%d.example", i)
				for j := range 10 {
					w.AddMX(fmt.Sprintf("m%d.example", i), fmt.Sprintf("h%d.m%d.example", j, i), 60)
					w.AddAddr(fmt.Sprintf("h%d.m%d.example", j, i), "192.0.2.1", 60)
				}
			}
			w.AddText("partner.example", "v=spf1"+terms+" +all", 60)
		}, 0, "not proven: spf: permerror for 198.51.100.1: more than 50 DNS questions", 0, maxQuestions},
		{"names of the client without end", func(w *world) {
			for i := range 60 {
				w.AddHost(fmt.Sprintf("h%d.example", i), "198.51.100.1", 60)
			}
			w.AddText("partner.example", "v=spf1 ptr -all", 60)
		}, 0, "not proven: spf: fail for 198.51.100.1", 0, 12},
		{"slowly", func(w *world) {
			for i := range 9 {
				w.AddText(fmt.Sprintf("i%d.example", i), fmt.Sprintf("v=spf1 include:i%d.example ?all", i+1), 60)
			}
			w.AddText("partner.example", "v=spf1 include:i0.example +all", 60)
		}, 900 * time.Millisecond, "no answer: spf: temperror for 198.51.100.1: no answer from the resolver (timeout)", spfTimeout, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				c.zone(w)
				w.Behave(dnstest.Behavior{Delay: c.delay})
				w.took(c.wait, func() {
					if got := say(w.spf("198.51.100.1")); got != c.want {
						t.Errorf("%s, want %s", got, c.want)
					}
				})
				if asked := len(w.Asked()); asked > c.most {
					t.Errorf("asked %d questions, at most %d are allowed: %q", asked, c.most, w.Asked())
				}
			})
		})
	}
}
