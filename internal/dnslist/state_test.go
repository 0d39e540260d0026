package dnslist

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/smtpfilter/clientname/dnstest"
)

// TestCheck checks what a list's answers to its check mean.
func TestCheck(t *testing.T) {
	bit, _ := ParseCodes([]string{"&8"})
	for _, c := range []struct {
		name, invalid, test string // addresses
		list                List
		state               State
		part                string
	}{
		{"good", "", "127.0.0.2", List{}, On, ""},
		{"default test point missing", "", "", List{}, On, "does not list TEST: check dns_zone, and set dns_test"},
		{"default test point 127.0.0.1", "", "127.0.0.1", List{}, On, "does not list TEST"},
		{"test point", "", "127.0.1.2", List{Test: "dbltest.com"}, On, ""},
		{"test point missing", "", "", List{Test: "dbltest.com"}, Off, "does not list its test point dbltest.com"},
		{"test point 127.0.0.1", "", "127.0.0.1", List{Test: "dbltest.com"}, Off, "does not list its test point"},
		{"test point refused", "", "127.255.255.254", List{}, Off, "answers 127.255.255.254 for its test point TEST"},
		{"test point foreign", "", "192.0.2.1", List{}, Off, "answers 192.0.2.1 for its test point TEST"},
		{"codes leave the test point out", "", "127.0.0.2", List{Codes: bit}, On, "127.0.0.2 for its test point TEST, which dns_codes (&8) leaves out"},
		{"lists INVALID", "127.0.0.2", "127.0.0.2", List{}, Off, "lists INVALID (127.0.0.2), so it would list every domain"},
		{"INVALID by a code that does not count", "127.0.0.2", "127.0.0.2", List{Codes: bit}, Off, "lists INVALID"},
		{"INVALID is 127.0.0.1", "127.0.0.1", "", List{}, Off, `127.0.0.1 for INVALID: it refuses our questions: "ask for an account"`},
		{"INVALID is refused", "127.255.255.254", "", List{}, Off, "127.255.255.254 for INVALID: it refuses our questions"},
		{"INVALID is foreign", "192.0.2.1", "", List{}, Off, "192.0.2.1 for INVALID: the resolver invents answers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				c.list.Name, c.list.Zone = "dbl", zone
				w.list("invalid.dbl.test", c.invalid, 3600)
				if c.invalid != "" {
					w.AddText("invalid.dbl.test", "ask for an account", 3600)
				}
				w.list(c.list.testName()+".dbl.test", c.test, 3600)
				w.list("listed.example.dbl.test", "127.0.0.10", 3600)
				w.start(c.list)
				want := "listed listed.example 127.0.0.10" // asked before the check has ended
				if c.state == Off {
					want = "unknown: off"
				}
				w.want("listed.example", want)
				w.wantState(c.state, c.part)
				log := w.log.take()
				if (log != "") != (c.part != "") || strings.Count(log, "\n") > 1 || c.part != "" && !strings.Contains(log, "list=dbl zone=dbl.test") {
					t.Errorf("log: %s", log)
				}
			})
		})
	}
}

// TestOffAndOn: a list that lists INVALID is not asked until it behaves.
func TestOffAndOn(t *testing.T) {
	inBubble(t, func(w *world) {
		w.list("listed.example.dbl.test", "127.0.0.2", 60)
		w.want("listed.example", "listed listed.example 127.0.0.2")
		w.list("invalid.dbl.test", "127.0.0.2", 60)
		time.Sleep(checkEvery)
		w.wantState(Off, "lists INVALID")
		w.seen = len(w.Asked())
		w.wantWait(0, func() { w.want("listed.example", "unknown: off") })
		w.wantWait(0, func() { w.want("new.example", "unknown: off") })
		w.wantAsked()
		if log := w.log.take(); strings.Count(log, "\n") != 1 || !strings.Contains(log, "level=WARN msg=\"a DNS list is switched off") {
			t.Errorf("log: %s", log)
		}
		// The checks become rarer, and say nothing new.
		off := w.status().Since
		for _, wait := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
			s := w.status()
			if got := s.NextCheck.Sub(s.Checked); got != wait*time.Second {
				t.Errorf("the next check is after %v, want %v", got, wait*time.Second)
			}
			time.Sleep(wait * time.Second)
			synctest.Wait()
		}
		if s := w.status(); s.State != Off || s.Since != off || w.log.take() != "" {
			t.Errorf("%+v", s)
		}
		w.Clear()
		w.list("test.dbl.test", "127.0.0.2", 60)
		time.Sleep(maxBackoff)
		w.wantState(On, "")
		if log := w.log.take(); !strings.Contains(log, `level=INFO msg="a DNS list is asked again" list=dbl`) {
			t.Errorf("log: %s", log)
		}
		w.want("new.example", "not listed")
		if n := w.status().Counts; n.Unknown[CauseOff] != 2 {
			t.Errorf("counts: %+v", n)
		}
	})
}

// TestListsEverything: a publisher begins to list everything, as some did at their end. No
// message is refused, whether the listing is new or cached.
func TestListsEverything(t *testing.T) {
	inBubble(t, func(w *world) {
		time.Sleep(confirmAfter)
		w.list("spam.example.dbl.test", "127.0.0.2", 3600)
		w.want("spam.example", "listed spam.example 127.0.0.2")
		w.wantAsked("A spam.example.dbl.test. udp", "TXT spam.example.dbl.test. udp", "A invalid.dbl.test. udp", "A test.dbl.test. udp")
		w.want("spam.example", "listed spam.example 127.0.0.2") // the check is fresh
		w.wantAsked()
		w.Behave(dnstest.Behavior{Lie: func(reply []byte, _ string) [][]byte {
			return [][]byte{forged(reply)}
		}})
		time.Sleep(confirmAfter)
		w.want("good.example", "unknown: off")
		w.want("spam.example", "unknown: off")
		w.wantState(Off, "lists INVALID (127.0.0.66)")
		w.Behave(dnstest.Behavior{})
		time.Sleep(firstBackoff)
		w.wantState(On, "")
		w.want("spam.example", "listed spam.example 127.0.0.2")
		w.want("good.example", "not listed") // the answer of before is forgotten
	})
	// The check gets no answer: the listing counts, after the timeout.
	inBubble(t, func(w *world) {
		w.list("spam.example.dbl.test", "127.0.0.2", 3600)
		w.want("spam.example", "listed spam.example 127.0.0.2")
		time.Sleep(confirmAfter)
		w.Behave(dnstest.Behavior{Hold: make(chan struct{})})
		w.wantWait(DefaultTimeout, func() { w.want("spam.example", "listed spam.example 127.0.0.2") })
	})
}

// TestBroken: a list that does not answer costs five waits, and then nothing.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		name  string
		fails dnstest.Behavior
		wait  time.Duration
		cause Cause
		why   string
	}{
		{"timeout", dnstest.Behavior{Hold: make(chan struct{})}, DefaultTimeout, CauseTimeout, "no answer in time"},
		{"servfail", dnstest.Behavior{Fail: true}, 0, CauseServfail, "the resolver gets no answer"},
		{"refused", dnstest.Behavior{Refuse: true}, 0, CauseNetwork, "the resolver cannot be reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				if c.wait > 0 {
					c.fails.Hold = make(chan struct{}) // of this bubble
				}
				w.list("listed.example.dbl.test", "127.0.0.2", 3600)
				w.want("listed.example", "listed listed.example 127.0.0.2")
				w.Behave(c.fails)
				for i := range breakAfter {
					w.wantWait(c.wait, func() { w.want(fmt.Sprintf("d%d.example", i), "unknown: "+string(c.cause)+", defer") })
				}
				w.wantState(Broken, c.why)
				time.Sleep(checkTimeout) // the check that follows fails, too
				synctest.Wait()
				w.seen = len(w.Asked())
				w.wantWait(0, func() { w.want("more.example", "unknown: broken, defer") })
				w.want("listed.example", "listed listed.example 127.0.0.2") // the cache counts still
				w.wantAsked()
				if log := w.log.take(); strings.Count(log, "\n") != 1 || !strings.Contains(log, `msg="a DNS list does not answer and is not asked for now"`) {
					t.Errorf("log: %s", log)
				}
				w.Behave(dnstest.Behavior{})
				time.Sleep(firstBackoff)
				w.wantState(On, "")
				if log := w.log.take(); !strings.Contains(log, "is asked again") {
					t.Errorf("log: %s", log)
				}
				w.want("more.example", "not listed")
			}, List{Name: "dbl", Zone: zone, Defer: true})
		})
	}
}

// TestFailuresInARow: failures with an answer between them do not switch a list off, however many
// they are.
func TestFailuresInARow(t *testing.T) {
	inBubble(t, func(w *world) {
		n := 0
		ask := func(want string) {
			n++
			w.wantWait(0, func() { w.want(fmt.Sprintf("d%d.example", n), want) })
		}
		for range 3 {
			w.Behave(dnstest.Behavior{Fail: true})
			for range breakAfter - 1 {
				ask("unknown: " + string(CauseServfail) + ", defer")
			}
			w.Behave(dnstest.Behavior{})
			ask("not listed")
		}
		w.wantState(On, "")
	}, List{Name: "dbl", Zone: zone, Defer: true})
}

// TestBrokenNames: failures of some names, of a list that passes its check, do not switch
// it off for long, and say nothing.
func TestBrokenNames(t *testing.T) {
	inBubble(t, func(w *world) {
		fail := func(reply []byte, _ string) [][]byte {
			if strings.Contains(strings.ToLower(string(reply)), "bad") {
				reply[3] = reply[3]&0xf0 | 2 // SERVFAIL
			}
			return [][]byte{reply}
		}
		w.Behave(dnstest.Behavior{Lie: fail})
		for i := range breakAfter {
			w.want(fmt.Sprintf("bad%d.example", i), "unknown: servfail")
		}
		synctest.Wait()
		w.wantState(On, "")
		w.want("good.example", "not listed")
		if log := w.log.take(); log != "" {
			t.Errorf("log: %s", log)
		}
		// Without any answer between, the next failures wait for the backoff.
		for i := range 2 * breakAfter {
			w.result(fmt.Sprintf("badagain%d.example", i))
			synctest.Wait()
		}
		w.wantState(Broken, "the resolver gets no answer")
		time.Sleep(maxBackoff)
		w.wantState(On, "")
	})
}

// TestSingleFailedCheck: one lost check does not stop a list that answers.
func TestSingleFailedCheck(t *testing.T) {
	inBubble(t, func(w *world) {
		time.Sleep(checkEvery - time.Second)
		w.Behave(dnstest.Behavior{Fail: true})
		time.Sleep(2 * time.Second)
		w.wantState(On, "")
		w.Behave(dnstest.Behavior{})
		w.want("good.example", "not listed")
		time.Sleep(firstBackoff)
		w.wantState(On, "")
		if s := w.status(); s.NextCheck.Sub(s.Checked) != checkEvery {
			t.Errorf("the next check is at %v, after that at %v", s.NextCheck, s.Checked)
		}
		w.Behave(dnstest.Behavior{Fail: true})
		time.Sleep(checkEvery + breakAfter*firstBackoff)
		w.wantState(Broken, "the resolver gets no answer")
	})
}

// TestFirstCheck: messages wait for the first check, and not longer than the timeout.
func TestFirstCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Behave(dnstest.Behavior{Lie: func(reply []byte, _ string) [][]byte {
			if strings.Contains(strings.ToLower(string(reply)), "invalid") {
				return nil
			}
			return [][]byte{reply}
		}})
		w.list("listed.example.dbl.test", "127.0.0.2", 60)
		w.start(List{Name: "dbl", Zone: zone})
		w.wantState(Checking, "")
		w.wantWait(DefaultTimeout, func() { w.want("listed.example", "unknown: timeout") })
		time.Sleep(checkTimeout)
		w.wantState(Broken, "no answer in time")
		w.Behave(dnstest.Behavior{})
		time.Sleep(2 * firstBackoff)
		w.wantState(On, "does not list TEST")
		w.want("listed.example", "listed listed.example 127.0.0.2")
	})
}

// TestApply: a reload keeps what is known of a list.
func TestApply(t *testing.T) {
	inBubble(t, func(w *world) {
		w.list("listed.example.dbl.test", "127.0.0.2", 3600)
		w.want("listed.example", "listed listed.example 127.0.0.2")
		old := w.client.Message()
		codes, _ := ParseCodes([]string{"127.0.0.3"})
		w.seen = len(w.Asked())
		apply := func(lists ...List) {
			t.Helper()
			if err := w.client.Apply(lists, resolverAddr); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		// Only the check is repeated; the codes count at once.
		apply(List{Name: "dbl", Zone: zone, Codes: codes, Timeout: time.Second})
		w.wantAsked("A invalid.dbl.test. udp", "A test.dbl.test. udp")
		w.want("listed.example", "not listed")
		if got := say(old.Result(w.Context(), "dbl", "listed.example")); got != "listed listed.example 127.0.0.2" {
			t.Errorf("a message that began before: %s", got)
		}
		if n := w.status().Counts; n.Listed != 2 || n.NotListed != 1 {
			t.Errorf("counts: %+v", n)
		}
		// Another test point is checked at once.
		apply(List{Name: "dbl", Zone: zone, Test: "point.example"})
		w.wantState(Off, "test point point.example")
		w.wantAsked("A invalid.dbl.test. udp", "A point.example.dbl.test. udp")
		if n := w.status().Counts; n.Listed != 0 {
			t.Errorf("counts: %+v", n)
		}
		// A reload checks a list that is switched off.
		w.list("point.example.dbl.test", "127.0.0.2", 60)
		apply(List{Name: "dbl", Zone: zone, Test: "point.example"})
		w.wantState(On, "")
		// A list that is gone is not asked, and not checked any more.
		apply()
		if s := w.client.Status(); len(s) != 0 {
			t.Errorf("%+v", s)
		}
		w.seen = len(w.Asked())
		time.Sleep(10 * checkEvery)
		w.wantAsked()
	})
}

// TestBadLists: nothing changes if a list is wrong.
func TestBadLists(t *testing.T) {
	inBubble(t, func(w *world) {
		for _, c := range []struct {
			want  string
			lists []List
		}{
			{"list dbl: there are two of this name", []List{{Name: "dbl", Zone: zone}, {Name: "dbl", Zone: "other.test"}}},
			{`list dbl: zone "dbl" is not the name of a list`, []List{{Name: "dbl", Zone: "dbl"}}},
			{`list dbl: test point "a b" is not a name`, []List{{Name: "dbl", Zone: zone, Test: "a b"}}},
		} {
			if err := w.client.Apply(c.lists, nil); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		}
		w.want("good.example", "not listed")
	})
}

// TestForgotten: a zone that lists everything, or a resolver that says so, is not believed
// again after a reload that makes a list of the same zone anew, or that changes the resolver.
func TestForgotten(t *testing.T) {
	inBubble(t, func(w *world) {
		apply := func(test string, resolvers ...netip.AddrPort) {
			t.Helper()
			if err := w.client.Apply([]List{{Name: "dbl", Zone: zone, Test: test, Timeout: time.Second}}, resolvers); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		w.list("clean.example.dbl.test", "127.0.0.2", 3600)
		w.want("clean.example", "listed clean.example 127.0.0.2")
		w.list("invalid.dbl.test", "127.0.0.2", 60)
		time.Sleep(checkEvery)
		w.wantState(Off, "lists INVALID")
		w.Clear()
		w.list("point.example.dbl.test", "127.0.0.2", 60)
		apply("point.example", resolverAddr...)
		w.wantState(On, "")
		w.want("clean.example", "not listed")

		w.list("other.example.dbl.test", "127.0.0.2", 3600)
		w.want("other.example", "listed other.example 127.0.0.2")
		w.Clear()
		w.list("point.example.dbl.test", "127.0.0.2", 60)
		apply("point.example", append(resolverAddr, resolverAddr...)...)
		w.want("other.example", "not listed")
	})
}
