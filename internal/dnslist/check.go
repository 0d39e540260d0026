package dnslist

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
)

// checkTimeout bounds a check of a list. No mail waits for it that long.
const checkTimeout = 5 * time.Second

// watch checks a list until its state is stopped.
func (c *Client) watch(s *state) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer func() { // messages that began before the list was removed
		s.mu.Lock()
		defer s.mu.Unlock()
		s.release()
	}()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
		}
		wait := s.untilCheck()
		if wait <= 0 {
			c.check(s)
			wait = s.untilCheck()
		}
		timer.Reset(wait)
	}
}

func (s *state) untilCheck() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.next)
}

// check checks a list and sets its state.
func (c *Client) check(s *state) {
	l := s.list.Load()
	found := c.examine(s.ctx, l)
	if s.ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = time.Now()
	found.apply(s)
	s.say()
	s.release()
}

// finding is the result of a check. At most one of off and failed is set.
type finding struct {
	off     string // why the list is switched off
	failed  Cause  // the list could not be checked
	warning string
}

// apply sets the state and the time of the next check. The caller must hold s.mu.
func (f finding) apply(s *state) {
	switch {
	case f.off != "":
		s.set(Off, f.off)
	case f.failed != "":
		if s.failures++; s.is == On && s.failures < breakAfter {
			s.next = s.checked.Add(firstBackoff)
			return
		}
		if s.is != Off { // what the last check has found holds
			s.set(Broken, failureText(f.failed))
		}
	default:
		switch s.is {
		case Off:
			s.backoff = 0
		case Broken: // only an answer to a question of mail resets it
			s.grow()
		}
		s.set(On, "")
		s.warning, s.failures = f.warning, 0
		s.next = s.checked.Add(checkEvery)
		return
	}
	s.warning = ""
	s.grow()
	s.next = s.checked.Add(s.backoff)
}

// examine asks a list for INVALID and its test point. Nothing of that is cached.
func (c *Client) examine(ctx context.Context, l *list) finding {
	ask := func(name string, kind uint16) answer {
		return c.cache.ask(ctx, name+"."+l.Zone, kind, checkTimeout)
	}
	var none, test answer
	var asking sync.WaitGroup
	asking.Go(func() { none = ask(strings.ToLower(invalid), dns.TypeA) })
	asking.Go(func() { test = ask(strings.ToLower(l.testPoint()), dns.TypeA) })
	asking.Wait()
	if len(none.addrs) > 0 {
		// Publishers often say in the text why they refuse.
		return finding{off: l.hasInvalid(none.addrs) + quoted(ask(strings.ToLower(invalid), dns.TypeTXT).text)}
	}
	for _, a := range []answer{none, test} {
		if a.cause != "" {
			return finding{failed: a.cause}
		}
	}
	return l.judgeTest(test.addrs)
}

// testPoint returns the name that the list must have.
func (l *list) testPoint() string {
	if l.Test == "" {
		return DefaultTest
	}
	return l.Test
}

// hasInvalid says why a list that has INVALID is switched off.
func (l *list) hasInvalid(addrs []netip.Addr) string {
	_, unusable := counting(nil, addrs)
	listing := slices.ContainsFunc(addrs, func(a netip.Addr) bool { return isListing(number(a)) })
	switch {
	case unusable == CauseForeign:
		return fmt.Sprintf("it answers %s for %s: the resolver invents answers, or the zone has another owner", join(addrs), invalid)
	case unusable == CauseRefused || !listing:
		return fmt.Sprintf("it answers %s for %s: it refuses our questions", join(addrs), invalid)
	}
	return fmt.Sprintf("it lists %s (%s), so it would list every domain", invalid, join(addrs))
}

// judgeTest judges the answer to the question for the test point.
func (l *list) judgeTest(addrs []netip.Addr) finding {
	codes, unusable := counting(l.rules, addrs)
	listing := slices.ContainsFunc(addrs, func(a netip.Addr) bool { return isListing(number(a)) })
	switch {
	case unusable != "":
		return finding{off: fmt.Sprintf("it answers %s for its test point %s", join(addrs), l.testPoint())}
	case !listing && l.Test != "":
		return finding{off: fmt.Sprintf("it does not list its test point %s", l.Test)}
	case !listing:
		return finding{warning: fmt.Sprintf("it does not list %s: check dns_zone, and set dns_test to the publisher's test point", DefaultTest)}
	case len(codes) == 0:
		return finding{warning: fmt.Sprintf("it answers %s for its test point %s, which dns_codes (%s) leaves out",
			join(addrs), l.testPoint(), l.Codes)}
	}
	return finding{}
}

func join(addrs []netip.Addr) string {
	var texts []string
	for _, a := range addrs {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ", ")
}

// quoted returns what a list says of itself, after a colon.
func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(": %q", text)
}
