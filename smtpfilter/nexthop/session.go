package nexthop

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"spamgate/smtpfilter/wire"
)

// A server may refuse the gate's own session: it wants TLS first, does not know the command, or
// does not expect it now. Passed on, such a 5xx would bounce the client's mail for a setting
// between two servers. So it is an error: the client receives a 4xx, and the next hop is down.

// ErrSession says that the next hop refuses the gate's own session.
var ErrSession = errors.New("the next hop refuses the gate's own session")

// errUpgraded is wrapped by the errors of a connection without TLS, if the next one begins TLS.
var errUpgraded = errors.New("STARTTLS comes first")

// Codes that are about the session and not about the mail (RFC 5321, section 4.2.2; RFC 4954,
// section 6).
const (
	codeNotImplemented = 502
	codeBadSequence    = 503
	codeLoginFirst     = 530 // RFC 3207, section 4: STARTTLS first
	codeEncryptFirst   = 538
)

// aboutSession reports whether a reply to a command with the client's mail is about the session.
// With X.5.4 (RFC 3463: invalid command arguments) it is about the client's parameters: so
// OpenSMTPD and Postfix use 503.
func aboutSession(r wire.Reply) bool {
	switch r.Code {
	case codeNotImplemented, codeBadSequence, codeLoginFirst, codeEncryptFirst:
		return !strings.HasPrefix(r.Lines[0], "5.5.4 ")
	}
	return false
}

// xclientAboutSession reports whether a refusal of XCLIENT is about the session. Postfix replies
// 501 to a value, and 554 or 5.7.1 if it accepts XCLIENT and turns away the client.
func xclientAboutSession(r wire.Reply) bool {
	return r.Permanent() && r.Code != 501 && r.Code != 554 && !strings.HasPrefix(r.Lines[0], "5.7.1 ")
}

// wantsLogin reports whether a 530 asks for a login (RFC 4954, section 6), and not for TLS.
func (c *conn) wantsLogin(r wire.Reply) bool {
	return r.Code == codeLoginFirst && c.offers.Has("AUTH") &&
		(c.tls != nil || !strings.Contains(strings.ToUpper(r.String()), "TLS"))
}

// wantsTLS reports whether a server that offers STARTTLS asks for it.
func (c *conn) wantsTLS(r wire.Reply) bool {
	return (r.Code == codeLoginFirst || r.Code == codeEncryptFirst) && c.tls == nil && c.offers.Has("STARTTLS") && !c.wantsLogin(r)
}

// checkSession returns an error if a reply is about the session. A 530 that asks for a login is
// about the client's, if the client can log in through the gate.
func (t *transaction) checkSession(r wire.Reply) error {
	if !aboutSession(r) || (t.env.MayLogin || t.login != nil) && t.conn.wantsLogin(r) {
		return nil
	}
	return t.hop.sessionError(t.conn, "", r)
}

// sessionError returns the error for a reply that refuses the session, after a text. If the server
// asks for STARTTLS, the gate uses it from now on, unless the configuration says how.
func (s *server) sessionError(c *conn, text string, r wire.Reply) error {
	err := fmt.Errorf("%w: %s%s", ErrSession, text, quote(r))
	if s.config.TLS.Mode != TLSNone || !c.wantsTLS(r) {
		return err
	}
	if !s.startsTLS.Swap(true) {
		s.log.Info("the next hop asks for STARTTLS: the gate uses it from now on, without verification", "next_hop", s.String(), "reply", quote(r))
	}
	return fmt.Errorf("%w: %w", err, errUpgraded)
}

// tlsMode returns the mode for a new connection.
func (s *server) tlsMode() TLSMode {
	if s.config.TLS.Mode == TLSNone && s.startsTLS.Load() {
		return TLSOpportunistic
	}
	return s.config.TLS.Mode
}

// noteSession notes an error that wraps ErrSession: the next hop is down until it accepts MAIL.
func (s *server) noteSession(err error) {
	s.known.health.refusal.Store(&err)
	if s.known.health.v.Swap(healthRefuses) != healthRefuses {
		s.log.Error("no mail can pass: the next hop refuses the gate's own session", "next_hop", s.String(), "error", err)
	}
	if failed := s.failed.Load(); failed != nil {
		(*failed)(err)
	}
}

// maxQuote bounds a reply in a text for people, in bytes.
const maxQuote = 200

// address matches what may be a mail address.
var address = regexp.MustCompile(`("[^"]*"|[^\s<>()"',;:]*)@[^\s<>()"',;:]+`)

// quote returns a reply for the log and for health: printable ASCII, without addresses, which
// these may have to hide.
func quote(r wire.Reply) string {
	text := address.ReplaceAllString(r.String(), "...")
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), maxQuote)]
}
