package alike

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// minCorpus is how many messages the proxy must have taken from the client: without
// those whose envelope is not an address.
const minCorpus = 500

// doors are the tables of the doors. The test learns from the log where they listen.
const doors = `
[policy]
allow_discard = true
contact = "see https://mx.example.org/refused"
recipient_domains = ["example.org"]
exempt_recipients = ["postmaster@", "open@example.org"]
[[policy_service]]
name = "policy"
addr = "127.0.0.1:0"
[[milter]]
name = "milter"
addr = "127.0.0.1:0"
[[dns_server]]
name = "dns"
addr = "127.0.0.1:0"
zone = "dbl.example.org"
hashed_zone = "hbl.example.org"
network_answers_per_second = 0
`

// nextHopName is what the next hop of the proxy calls itself, and the mail server that asks
// the milter.
const nextHopName = "mx.example.org"

// everyDoor is a gate with all doors.
type everyDoor struct {
	*harness.Gate
	sink *smtptest.Sink
	mail []mail
	late map[string]bool // by helo: see lateTag
}

// TestEveryDoorAlike sends one corpus through every door of a gate. For the same envelope
// and header each door gives the proxy's replies, ids apart, and logs the same. What a
// protocol cannot carry is told by the comments.
func TestEveryDoorAlike(t *testing.T) {
	sink := smtptest.NewSink(t, smtptest.Config{Replies: map[string]string{"GREETING": "220 " + nextHopName + " ESMTP"}})
	g := harness.StartGate(t, harness.Setup{
		NextHop: "smtp://" + sink.Addr(),
		Keys:    map[string]string{"listen": "max_connections = 0"},
		Tables:  doors,
		Lists:   lists,
		Files:   files,
	})
	e := &everyDoor{g, sink, corpus(t), map[string]bool{}}
	proxy := &proxyClient{addr: g.Addr, sink: sink}
	text := map[string]*heard{} // by helo
	for _, m := range e.mail {
		text[m.helo] = proxy.send(t, m)
	}
	proxy.delivered(text)
	e.mail = slices.DeleteFunc(e.mail, func(m mail) bool { return text[m.helo].mail != "" })
	if len(e.mail) < minCorpus {
		t.Fatalf("the proxy has taken %d envelopes, want %d", len(e.mail), minCorpus)
	}
	t.Logf("%d messages", len(e.mail))

	e.milter(t, text)
	e.policy(t, text)
	e.dns(t, proxy)
	g.Stop() // now the log is whole
	e.logs(t, text)
}

// addr returns where a door listens.
func (e *everyDoor) addr(door string) string {
	e.T.Helper()
	return e.WaitRecord("door open", "listener", door).Text("addr")
}

// versionOf returns the version of the milter protocol for a message: 2 for each third.
func versionOf(i int) uint32 {
	if i%3 == 2 {
		return 2
	}
	return 6
}

// milter compares the milter with the proxy: everything.
func (e *everyDoor) milter(t *testing.T, text map[string]*heard) {
	addr := e.addr("milter")
	for i, m := range e.mail {
		again, version := m, versionOf(i)
		again.helo = "v." + m.helo
		got := sendMilter(t, addr, version, nextHopName, again)
		want := text[m.helo]
		if e.late[m.helo] = lateTag(m, got, want); !e.late[m.helo] && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: from <%s> to %q\n%s\nthe milter (version %d): %+v\nthe proxy: %+v", m.what, m.from, m.rcpts, m.header, version, got, want)
		}
	}
}

// proofPending ends a tag that the proxy writes before it knows whether a signature is valid.
const proofPending = "; proof=pending"

// lateTag reports whether the milter differs from the proxy because the proxy has begun to pass
// the message on before it knows whether a signature is valid. Then the proxy cannot tag it any
// more: it has tagged it ahead, or refuses it where the tag would have been the way out for
// recipients who want different things.
func lateTag(m mail, got, want *heard) bool {
	if !strings.Contains(m.header, "DKIM-Signature:") || !reflect.DeepEqual(got.rcpts, want.rcpts) || got.end != "" {
		return false
	}
	ahead := want.end == "" && reflect.DeepEqual(got.got, want.got) && !reflect.DeepEqual(got.tags, want.tags) &&
		!slices.ContainsFunc(got.tags, func(tag string) bool {
			return !slices.Contains(want.tags, tag) && !slices.Contains(want.tags, tag+proofPending)
		}) &&
		!slices.ContainsFunc(want.tags, func(tag string) bool {
			return !slices.Contains(got.tags, tag) && !strings.HasSuffix(tag, proofPending)
		})
	return ahead || len(got.tags) > 0 && strings.HasSuffix(want.end, ", send it to the others alone")
}

// policy compares the policy service with the proxy: the replies to the recipients, and the
// tag of the envelope. It does not know the header. A discarded message is tagged.
func (e *everyDoor) policy(t *testing.T, text map[string]*heard) {
	c := dialPolicy(t, e.addr("policy"))
	tags := e.envelopeTags(text)
	for _, m := range e.mail {
		again := m
		again.helo = "p." + m.helo
		got, want := c.send(t, again), text[m.helo]
		if !reflect.DeepEqual(got.rcpts, want.rcpts) {
			t.Errorf("%s: from <%s> to %q\nthe policy service: %q\nthe proxy: %q", m.what, m.from, m.rcpts, got.rcpts, want.rcpts)
		}
		tag := tags[m.from]
		if reflect.DeepEqual(m.rcpts, recipients[1]) {
			tag = tags[m.from+" to an exempt recipient"]
		}
		if m.what == "matrix" && !reflect.DeepEqual(got.tags, tag) {
			t.Errorf("%s: from <%s> to %q: the policy service tags it with %q, want %q", m.what, m.from, m.rcpts, got.tags, tag)
		}
	}
}

// envelopeTags returns how the proxy tags messages because of their reverse-path alone. What
// it discards is tagged by the policy service.
func (e *everyDoor) envelopeTags(text map[string]*heard) map[string][]string {
	tags := map[string][]string{"a@discard.example": {"listed; list=dropped; reason=dropped"}}
	for _, m := range e.mail {
		if m.what != "matrix" || m.header != headers[0] || len(text[m.helo].got) == 0 {
			continue
		}
		switch {
		case reflect.DeepEqual(m.rcpts, recipients[0]):
			tags[m.from] = text[m.helo].tags
		case reflect.DeepEqual(m.rcpts, recipients[1]):
			tags[m.from+" to an exempt recipient"] = text[m.helo].tags
		}
	}
	return tags
}
