package alike

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// actionsInDNS are the addresses of the actions.
var actionsInDNS = func() map[string]string {
	all := map[string]string{}
	for a := verdict.Tag; a < verdict.Monitor; a++ {
		all[fmt.Sprintf("127.0.0.%d", a.Code())] = a.String()
	}
	return all
}()

// allowedInDNS stands for an address that an allow list lets in.
const allowedInDNS = "allowed"

// askDNS returns what a zone says of a name: the action, or "accept" if it does not know
// the name, and the text.
func askDNS(t testing.TB, addr, name string) (action, text string) {
	t.Helper()
	c := &dns.Client{}
	ask := func(kind uint16) []dns.RR {
		q := new(dns.Msg)
		q.SetQuestion(dns.Fqdn(name), kind)
		r, _, err := c.Exchange(q, addr)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r.Rcode != dns.RcodeSuccess && r.Rcode != dns.RcodeNameError || r.Rcode == dns.RcodeNameError && len(r.Answer) > 0 {
			t.Fatalf("%s: %v", name, r)
		}
		return r.Answer
	}
	a, txt := ask(dns.TypeA), ask(dns.TypeTXT)
	if len(a) != len(txt) || len(a) > 1 {
		t.Fatalf("%s: %v, %v", name, a, txt)
	}
	if len(a) == 0 {
		return "accept", ""
	}
	value := a[0].(*dns.A).A.String()
	if value == "127.0.1.1" {
		return allowedInDNS, ""
	}
	if action = actionsInDNS[value]; action == "" {
		t.Fatalf("%s: %s is no action's", name, value)
	}
	return action, strings.Join(txt[0].(*dns.TXT).Txt, "")
}

var hostName = regexp.MustCompile(`^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+$`)

// dns compares DNS with the proxy. The zone of domains knows the domain only, so that the
// proxy is asked for a sender there who is in no list. The zone of hashes knows the
// addresses that are entries themselves.
func (e *everyDoor) dns(t *testing.T, proxy *proxyClient) {
	addr := e.addr("dns")
	domains, addresses := map[string]bool{}, map[string]bool{}
	for _, m := range e.mail {
		for _, s := range append([]string{m.from}, senders...) {
			a, err := sender.Parse(s)
			if err != nil || !hostName.MatchString(a.Domain()) {
				continue
			}
			addresses[a.String()] = true
			for d, ok := a.Domain(), true; ok && strings.Contains(d, "."); _, d, ok = strings.Cut(d, ".") {
				domains[d] = true
			}
		}
	}
	found := map[string]int{}
	for _, d := range slices.Sorted(maps.Keys(domains)) {
		action, text := askDNS(t, addr, d+".dbl.example.org")
		e.compareDNS(t, proxy, "nobody-has-this@"+d, action, text)
		found[action]++
	}
	for action := range maps.Values(actionsInDNS) {
		if found[action] == 0 {
			t.Errorf("of %d domains none has the action %s in DNS: %v", len(domains), action, found)
		}
	}
	hashed, allowed := 0, 0
	for _, a := range slices.Sorted(maps.Keys(addresses)) {
		sum := sha1.Sum([]byte(a))
		if action, text := askDNS(t, addr, hex.EncodeToString(sum[:])+".hbl.example.org"); action == allowedInDNS {
			e.compareDNS(t, proxy, a, "accept", "")
			allowed++
		} else if action != "accept" {
			e.compareDNS(t, proxy, a, action, text)
			hashed++
		}
	}
	if want := 1; hashed != want { // ann@address.example; the others are exceptions and allowed
		t.Errorf("of %d addresses %d are found by their hash, want %d", len(addresses), hashed, want)
	}
	if allowed == 0 {
		t.Errorf("of %d addresses none is allowed", len(addresses))
	}
}

// compareDNS wants the proxy to do with a sender what DNS says, for the reason that DNS says.
func (e *everyDoor) compareDNS(t *testing.T, proxy *proxyClient, from, action, text string) {
	t.Helper()
	m := mail{what: "DNS", helo: fmt.Sprintf("dns-%x.client.example", from), from: from, rcpts: []string{"you@example.org"}, header: "From: a@clean.example\r\n"}
	if len(m.helo) > 200 {
		return // no name of a client
	}
	h := proxy.send(t, m)
	proxy.delivered(map[string]*heard{m.helo: h})
	did := "accept"
	switch {
	case len(h.rcpts) != 1:
		t.Errorf("<%s>: the proxy says %q to MAIL, and DNS %s", from, h.mail, action)
		return
	case strings.HasPrefix(h.rcpts[0], "5"):
		did = "reject"
	case strings.HasPrefix(h.rcpts[0], "4"):
		did = "defer"
	case len(h.got) == 0 && verdict.ActionOf(action).Drops():
		did = action
	case len(h.got) == 0:
		did = "drop"
	case len(h.tags) > 0:
		did = "tag"
	}
	if did != action {
		t.Errorf("<%s>: the proxy does %s, and DNS says %s %q", from, did, action, text)
	}
	_, why, _ := strings.Cut(strings.Replace(h.rcpts[0], "; id ID", "", 1), " refused: ")
	if why != "" && text != why {
		t.Errorf("<%s>: the proxy says %q, and DNS %q", from, why, text)
	}
}
