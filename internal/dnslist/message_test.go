package dnslist

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/smtpfilter/clientname/dnstest"
)

// TestResults checks what the answers of a list mean.
func TestResults(t *testing.T) {
	inBubble(t, func(w *world) {
		w.list("listed.example.dbl.test", "127.0.0.4 127.0.0.2 127.0.0.2", 60)
		w.AddText("listed.example.dbl.test", "see https://dbl.test/listed", 60)
		w.list("sub.both.example.dbl.test", "127.0.0.3", 60)
		w.list("both.example.dbl.test", "127.0.0.2", 60)
		w.list("one.example.dbl.test", "127.0.0.1", 60)
		w.list("refused.example.dbl.test", "127.255.255.254", 60)
		w.list("hijacked.example.dbl.test", "192.0.2.1", 60)
		w.AddText("textonly.example.dbl.test", "no address", 60)
		w.AddAlias("alias.example.dbl.test", "listed.dbl.test", 60)
		w.list("listed.dbl.test", "127.0.0.9", 60)
		w.AddText("listed.dbl.test", "an alias", 60)
		w.AddAlias("loop.example.dbl.test", "loop.example.dbl.test", 60)
		w.list("odd.example.dbl.test", "127.0.0.2", 60)
		w.AddText("odd.example.dbl.test", "a\x01\x1b[31m \"b\" \\ \xc3\xa9\r\nc", 60)
		w.list("long.example.dbl.test", "127.0.0.2", 60)
		w.AddText("long.example.dbl.test", strings.Repeat("x", 250), 60)
		w.list("several.example.dbl.test", "127.0.0.2", 60)
		for _, text := range []string{"first", "second", "first"} {
			w.AddText("several.example.dbl.test", text, 60)
		}
		for _, c := range []struct{ domain, want string }{
			{"good.example", "not listed"},
			{"listed.example", "listed listed.example 127.0.0.2, 127.0.0.4 (see https://dbl.test/listed)"},
			{"a.b.listed.example", "listed listed.example 127.0.0.2, 127.0.0.4 (see https://dbl.test/listed)"},
			{"unlisted.example", "not listed"},
			{"x.sub.both.example", "listed sub.both.example 127.0.0.3"},
			{"y.both.example", "listed both.example 127.0.0.2"},
			{"one.example", "not listed"},
			{"refused.example", "unknown: refused"},
			{"sub.refused.example", "unknown: refused"},
			{"hijacked.example", "unknown: foreign"},
			{"textonly.example", "not listed"},
			{"alias.example", "listed alias.example 127.0.0.9 (an alias)"},
			{"loop.example", "not listed"},
			{"odd.example", `listed odd.example 127.0.0.2 (a??[31m "b" \ ????c)`},
			{"long.example", "listed long.example 127.0.0.2 (" + strings.Repeat("x", MaxReason) + ")"},
			{"several.example", "listed several.example 127.0.0.2 (first; second)"},
			{"[192.0.2.1]", "unknown: name"},
			{"192.0.2.1", "unknown: name"},
			{"example", "unknown: name"},
			{"", "unknown: name"},
			{strings.Repeat("a.", 120) + "example", "unknown: limit"},
		} {
			w.want(c.domain, c.want)
		}
		if got := say(w.client.Message().Result(w.Context(), "other", "listed.example")); got != "not listed" {
			t.Errorf("a list that is not configured: %s", got)
		}
	})
}

// TestCodes: two lists of one zone differ in what counts, and share the questions.
func TestCodes(t *testing.T) {
	phishing, _ := ParseCodes([]string{"&8"})
	abuse, _ := ParseCodes([]string{"&64"})
	inBubble(t, func(w *world) {
		w.list("bad.example.multi.test", "127.0.0.8", 60)
		w.AddText("bad.example.multi.test", "phishing", 60)
		m := w.client.Message()
		m.Ask("ph", "bad.example")
		m.Ask("abuse", "bad.example")
		ph, ab := m.Result(w.Context(), "ph", "bad.example"), m.Result(w.Context(), "abuse", "bad.example")
		if say(ph) != "listed bad.example 127.0.0.8 (phishing)" || say(ab) != "not listed" {
			t.Errorf("%s; %s", say(ph), say(ab))
		}
		w.wantAsked("A bad.example.multi.test. udp", "TXT bad.example.multi.test. udp")
		for i, want := range []string{"0.0.0.8", "0.0.0.64"} {
			if s := w.client.Status()[i]; !strings.Contains(s.Warning, "leaves out") {
				t.Errorf("the test point answers 127.0.0.2 and %s counts; warning %q", want, s.Warning)
			}
		}
	}, List{Name: "ph", Zone: "multi.test", Codes: phishing}, List{Name: "abuse", Zone: "multi.test", Codes: abuse})
}

// TestExact: the domain alone is asked for.
func TestExact(t *testing.T) {
	inBubble(t, func(w *world) {
		w.list("example.org.dbl.test", "127.0.0.2", 60)
		w.want("mail.example.org", "not listed")
		w.want("example.org", "listed example.org 127.0.0.2")
		w.wantAsked("A mail.example.org.dbl.test. udp", "A example.org.dbl.test. udp", "TXT example.org.dbl.test. udp")
	}, List{Name: "dbl", Zone: "DBL.test", Exact: true})
}

// TestAskedOnce: many messages ask for the same domain at the same time, and later.
func TestAskedOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.list("listed.example.dbl.test", "127.0.0.2", 60)
		hold := make(chan struct{})
		w.Behave(dnstest.Behavior{Hold: hold})
		var messages sync.WaitGroup
		for range 50 {
			messages.Go(func() {
				m := w.client.Message()
				m.Ask("dbl", "listed.example", "listed.example")
				for range 3 {
					if got := say(m.Result(w.Context(), "dbl", "listed.example")); got != "listed listed.example 127.0.0.2" {
						t.Error(got)
					}
				}
			})
		}
		synctest.Wait()
		close(hold)
		messages.Wait()
		w.want("listed.example", "listed listed.example 127.0.0.2")
		w.wantAsked("A listed.example.dbl.test. udp", "TXT listed.example.dbl.test. udp")
		if n := w.status().Counts; n.Questions != 2 || n.CacheHits != 50 || n.Listed != 51 || n.NotListed != 0 {
			t.Errorf("counts: %+v", n)
		}
	})
}

// TestWait: a server that does not answer costs a message the timeout, whatever it asks.
func TestWait(t *testing.T) {
	const timeout = 2 * time.Second
	inBubble(t, func(w *world) {
		w.list("known.example.dbl.test", "127.0.0.2", 3600)
		w.want("known.example", "listed known.example 127.0.0.2")
		w.Behave(dnstest.Behavior{Hold: make(chan struct{})})
		m := w.client.Message()
		m.Ask("dbl", "a.example", "b.example")
		m.Ask("other", "a.example")
		w.wantWait(timeout, func() {
			for _, list := range []string{"dbl", "other"} {
				for _, domain := range []string{"a.example", "b.example", "x.c.example"} {
					want := "unknown: timeout"
					if list == "other" {
						want += ", defer"
					}
					if got := say(m.Result(w.Context(), list, domain)); got != want {
						t.Errorf("%s: %s is %s", list, domain, got)
					}
				}
			}
			// What is cached costs no time.
			if got := say(m.Result(w.Context(), "dbl", "known.example")); got != "listed known.example 127.0.0.2" {
				t.Error(got)
			}
		})
		counts := w.client.Status()[1].Counts
		if counts.Unknown[CauseTimeout] != 3 || counts.Listed+counts.NotListed != 0 {
			t.Errorf("counts: %+v", counts)
		}
		// Half of the time is used at the reverse-path, the rest is there for the header.
		m = w.client.Message()
		hold := make(chan struct{})
		w.Behave(dnstest.Behavior{Hold: hold})
		time.AfterFunc(time.Second, func() { close(hold) })
		w.wantWait(time.Second, func() { m.Result(w.Context(), "dbl", "d.example") })
		time.Sleep(time.Minute) // the message comes
		w.Behave(dnstest.Behavior{Hold: make(chan struct{})})
		w.wantWait(time.Second, func() { m.Result(w.Context(), "dbl", "e.example") })
		w.wantWait(0, func() { m.Result(w.Context(), "dbl", "f.example") })
	}, List{Name: "dbl", Zone: zone}, List{Name: "other", Zone: "other.test", Timeout: timeout, Defer: true})
}

// TestSlowText: the reason may be missing, but the answer counts.
func TestSlowText(t *testing.T) {
	inBubble(t, func(w *world) {
		w.list("listed.example.dbl.test", "127.0.0.2", 60)
		w.AddText("listed.example.dbl.test", "why", 60)
		var stall atomic.Bool
		stall.Store(true)
		w.Behave(dnstest.Behavior{Lie: func(reply []byte, _ string) [][]byte {
			if stall.Load() && strings.Contains(string(reply), "\x00\x10\x00\x01") { // TXT IN
				return nil
			}
			return [][]byte{reply}
		}})
		w.wantWait(DefaultTimeout, func() { w.want("listed.example", "listed listed.example 127.0.0.2") })
		w.wantWait(0, func() { w.want("listed.example", "listed listed.example 127.0.0.2") }) // the failure is cached
		stall.Store(false)
		time.Sleep(failureTTL)
		w.want("listed.example", "listed listed.example 127.0.0.2 (why)")
		w.wantState(On, "")
	})
}

// TestStopped: a context that ends, and a Client that is closed, end the wait.
func TestStopped(t *testing.T) {
	inBubble(t, func(w *world) {
		w.Behave(dnstest.Behavior{Hold: make(chan struct{})})
		m := w.client.Message()
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(time.Millisecond, cancel)
		w.wantWait(time.Millisecond, func() {
			if got := say(m.Result(ctx, "dbl", "a.example")); got != "unknown: stopped, defer" {
				t.Error(got)
			}
		})
		time.AfterFunc(time.Millisecond, w.client.Close)
		w.wantWait(time.Millisecond, func() {
			if got := say(m.Result(w.Context(), "dbl", "a.example")); got != "unknown: stopped, defer" {
				t.Error(got)
			}
		})
		w.want("b.example", "unknown: stopped, defer")
		if w.client.Apply(nil, nil) == nil {
			t.Error("a closed Client takes lists")
		}
	}, List{Name: "dbl", Zone: zone, Defer: true})
}

// TestLimit: a message asks for 20 names, and fairly.
func TestLimit(t *testing.T) {
	inBubble(t, func(w *world) {
		m := w.client.Message()
		deep := strings.Repeat("x.", 100) + "deep.example"
		m.Ask("dbl", deep, "a.b.second.example")
		var many []string
		for i := range 30 {
			many = append(many, fmt.Sprintf("d%d.example", i))
		}
		m.Ask("dbl", many...)
		m.Ask("other", deep) // the names that were asked before count once
		for i, domain := range many {
			want := "not listed"
			if i >= MaxNames-maxOfDomain-3 {
				want = "unknown: limit"
			}
			if got := say(m.Result(w.Context(), "dbl", domain)); got != want {
				t.Errorf("%s is %s, want %s", domain, got, want)
			}
		}
		if got := say(m.Result(w.Context(), "dbl", deep)); got != "unknown: limit" {
			t.Errorf("the domain with many labels is %s: most of its parents were not asked", got)
		}
		want := []string{
			"A " + deep + ".dbl.test. udp", "A deep.example.dbl.test. udp", "A x.deep.example.dbl.test. udp",
			"A x.x.deep.example.dbl.test. udp", "A x.x.x.deep.example.dbl.test. udp",
			"A second.example.dbl.test. udp", "A b.second.example.dbl.test. udp", "A a.b.second.example.dbl.test. udp",
		}
		for _, q := range want[:maxOfDomain] {
			want = append(want, strings.Replace(q, "dbl.test", "other.test", 1))
		}
		for _, d := range many[:MaxNames-maxOfDomain-3] {
			want = append(want, "A "+d+".dbl.test. udp")
		}
		synctest.Wait()
		w.wantAsked(want...)
		if got := w.client.Status()[0].Counts.Unknown[CauseLimit]; got != 30-12+1 {
			t.Errorf("%d domains are counted as not asked", got)
		}
	}, List{Name: "dbl", Zone: zone, Defer: true}, List{Name: "other", Zone: "other.test"})
}

// TestFairness: the registered domains of all senders are asked before the rest.
func TestFairness(t *testing.T) {
	inBubble(t, func(w *world) {
		var domains []string
		for i := range MaxNames {
			domain := fmt.Sprintf("spam%d.example", i)
			domains = append(domains, "a.b.c."+domain)
			w.list(domain+".dbl.test", "127.0.0.2", 60)
		}
		m := w.client.Message()
		m.Ask("dbl", domains...)
		for _, d := range domains {
			if r := m.Result(w.Context(), "dbl", d); r.Outcome != Listed || "a.b.c."+r.Name != d {
				t.Errorf("%s: %s", d, say(r))
			}
		}
	})
}
