package proof

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"blitiri.com.ar/go/spf"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// spfTimeout bounds what SPF waits for, over all its questions. A client waits five minutes
// for the reply to RCPT (RFC 5321, section 4.5.3.2.3), but its session holds a place among
// those of its address. A resolver that works answers each question in well under a second.
const spfTimeout = 5 * time.Second

// spfResult is what SPF says of the reverse-path.
type spfResult struct {
	state verdict.ProofState
	why   string
	asked time.Time
}

// spfState says whether SPF proves a sender, which must be the reverse-path itself: not an
// address that a forwarder wrapped in it, nor one in the header.
func (msg *Message) spfState(ctx context.Context, m *verdict.Message, stage verdict.Stage, a sender.Address) (verdict.ProofState, string) {
	path, err := sender.Parse(m.ReversePath)
	switch {
	case stage != verdict.Envelope:
		return verdict.NotProven, "it proves only the reverse-path"
	case err != nil || path.String() != a.String():
		return verdict.NotProven, "it proves only the reverse-path itself"
	}
	client := m.Client.Addr().Unmap().WithZone("")
	if why := unusable(m, client); why != "" {
		msg.proofs.warned.Do(func() { msg.proofs.warn(client, why) })
		return verdict.NotProven, why
	}
	msg.mu.Lock()
	defer msg.mu.Unlock()
	if msg.spf == nil {
		msg.spf = msg.proofs.recentSPF(ctx, client, m.Helo, path)
	}
	return msg.spf.state, msg.spf.why
}

// warn says once what a postmaster should do.
func (p *Proofs) warn(client netip.Addr, why string) {
	p.log.Warn("SPF proves no sender of this client, since its address is not that of the sending server: let the proxy send PROXY or XCLIENT (proxy_protocol, trusted_proxies)",
		"client", client, "reason", why)
}

// shared is the address space that carriers share between customers (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// unusable says why the client's address is not that of the server that sends the message,
// "" if it may be.
func unusable(m *verdict.Message, client netip.Addr) string {
	switch {
	case !client.IsValid():
		return "the client's address is not known"
	case m.ClientNamed:
		return ""
	case m.ClientIsProxy:
		return fmt.Sprintf("the client %v is a trusted proxy that named no client", client)
	case client.IsLoopback() || client.IsPrivate() || client.IsLinkLocalUnicast() || client.IsUnspecified() || shared.Contains(client):
		return fmt.Sprintf("the client has the private address %v", client)
	}
	return ""
}

// SPF results count for spfLife, so that a message that is judged several times, at a policy
// service for each recipient, is asked about once. A client that got 451 comes later than that.
const (
	spfLife    = time.Minute
	maxResults = 10_000
)

// spfKey is what a result of SPF depends on.
type spfKey struct {
	client     netip.Addr
	helo, path string
}

// recentSPF returns the result of SPF, which may be from a question shortly before.
func (p *Proofs) recentSPF(ctx context.Context, client netip.Addr, helo string, path sender.Address) *spfResult {
	key := spfKey{client, helo, path.String()}
	p.mu.Lock()
	r, ok := p.results.Get(key)
	p.mu.Unlock()
	if ok && time.Since(r.asked) < spfLife {
		return r
	}
	r = p.checkSPF(ctx, client, helo, path)
	if ctx.Err() != nil {
		return r // nobody waited for the answer
	}
	r.asked = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results.Put(key, r)
	return r
}

// checkSPF asks whether a client may send for the domain of the reverse-path, for the null
// one that of HELO (RFC 7208, section 2.4).
func (p *Proofs) checkSPF(ctx context.Context, client netip.Addr, helo string, path sender.Address) *spfResult {
	from := path.Local() + "@" + path.Domain()
	switch {
	case path.IsNull() && (helo == "" || strings.ContainsAny(helo, "@[")):
		return &spfResult{why: "the null sender is proven by the name in HELO, and there is none"}
	case path.IsNull():
		from = "postmaster@" + helo
	case path.IsLiteral():
		return &spfResult{why: "an address literal has no record"}
	case strings.Contains(path.Local(), "@"): // the library takes what follows the first one as domain
		return &spfResult{why: "the local part has an @"}
	}
	ctx, cancel := context.WithTimeout(ctx, spfTimeout)
	defer cancel()
	questions := &questions{resolver: p.resolver, client: client, left: maxQuestions}
	result, err := check(client, helo, from, spf.WithContext(ctx), spf.WithResolver(questions))
	if questions.exhausted() { // its author's fault, and a later attempt changes nothing
		result, err = spf.PermError, errTooMany
	}
	r := &spfResult{why: fmt.Sprintf("%s for %v", result, client)}
	switch result {
	case spf.Pass:
		r.state = verdict.Proven
	case spf.TempError:
		r.state = verdict.ProofUnknown
		r.why += ": " + reason(err)
	case spf.PermError:
		r.why += ": " + reason(err)
	}
	return r
}

// check asks the library. What panics because of a record proves nothing.
func check(client netip.Addr, helo, from string, options ...spf.Option) (result spf.Result, err error) {
	defer func() {
		if recover() != nil {
			result, err = spf.PermError, errors.New("the record cannot be read")
		}
	}()
	return spf.CheckHostWithSender(client.AsSlice(), helo, from, options...)
}

// reason returns an error of a library in words, without the name in DNS: a stranger may
// have chosen it.
func reason(err error) string {
	var failure *net.DNSError
	switch {
	case errors.As(err, &failure):
		return failure.Err
	case err == nil:
		return "no reason"
	}
	return err.Error()
}
