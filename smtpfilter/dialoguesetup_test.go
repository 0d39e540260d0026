package smtpfilter_test

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// scene is the set-up of a dialogue: the gate and its next hop.
type scene struct {
	lists  listScene
	judge  tableJudge
	policy smtpfilter.Policy
	wire   smtpfilter.Settings
	auth   bool
	limits limit.Config
	tarpit *limit.Tarpit
	id     string

	hop   smtptest.Config
	next  nexthop.SMTPConfig
	spare bool // another next hop stands in for the first
}

func newScene() *scene {
	return &scene{
		judge: tableJudge{},
		hop:   smtptest.Config{Replies: map[string]string{}},
		next:  nexthop.SMTPConfig{Hostname: "gate.example", ProbeInterval: -1, Reuse: true},
	}
}

// setUp carries out a line before the conversation.
func (s *scene) setUp(l smtptest.Line) error {
	verb, arg := l.Verb, l.Text
	if known, err := s.lists.setUp(&s.policy, verb, arg); known {
		return err
	}
	switch verb {
	case "judge":
		return s.judge.add(arg)
	case "clear":
		s.judge["clear "+arg] = verdict.Verdict{ClearsMessage: true, Match: verdict.Match{List: "always"}}
		return nil
	case "policy":
		return setPolicy(&s.policy, strings.Fields(arg))
	case "hop":
		return s.setHop(arg)
	case "spare":
		s.spare = true
		return nil
	case "allow":
		return s.allow(strings.Fields(arg))
	}
	return s.listen(verb, arg)
}

// listen sets the listener's settings.
func (s *scene) listen(verb, arg string) (err error) {
	switch verb {
	case "limit":
		s.wire.MaxMessageBytes, err = strconv.ParseInt(arg, 10, 64)
	case "tls":
		mode, ok := map[string]wire.TLSMode{"offered": wire.TLSOffered, "required": wire.TLSRequired, "implicit": wire.TLSImplicit}[arg]
		if !ok {
			return errors.New("unknown mode")
		}
		s.wire.TLS, s.wire.TLSMode = smtptest.ServerTLS(), mode
	case "auth":
		s.auth, s.wire.RequireAuth = true, arg == "required"
	case "id":
		s.id, s.next.GateID = arg, arg
	case "trusted":
		return addPrefix(&s.wire.TrustedProxies, arg)
	case "proxy":
		return addPrefix(&s.wire.ProxySources, arg)
	case "normalize":
		prefix, err := netip.ParsePrefix(arg)
		s.wire.Normalize = prefix.Contains
		return err
	case "tarpit":
		var places int
		places, err = strconv.Atoi(arg)
		s.tarpit = limit.NewTarpit(places)
	default:
		return errors.New("unknown set-up")
	}
	return err
}

// allow sets the limits of "client", "network" or "login", in pairs of name and number. The clock
// does not move, so allowances stay used up.
func (s *scene) allow(f []string) error {
	start := time.Now()
	s.limits.Now = func() time.Time { return start }
	if f[0] == limit.Login {
		return s.allowLogin(f[1:])
	}
	whose := &s.limits.Client
	if f[0] == limit.Network {
		whose = &s.limits.Network
	}
	for pair := range slices.Chunk(f[1:], 2) {
		n, err := strconv.Atoi(pair[1])
		if err != nil {
			return err
		}
		field, ok := map[string]*int{
			limit.Connections:          &whose.Connections,
			limit.ConnectionsPerMinute: &whose.ConnectionsPerMinute,
			limit.MessagesPerMinute:    &whose.MessagesPerMinute,
			limit.RecipientsPerMinute:  &whose.RecipientsPerMinute,
			limit.ErrorsPerMinute:      &whose.ErrorsPerMinute,
		}[pair[0]]
		if !ok {
			return errors.New("unknown limit")
		}
		*field = n
	}
	return nil
}

func (s *scene) allowLogin(f []string) (err error) {
	for pair := range slices.Chunk(f, 2) {
		field, ok := map[string]*int{
			limit.MessagesPerMinute:   &s.limits.Login.MessagesPerMinute,
			limit.RecipientsPerMinute: &s.limits.Login.RecipientsPerMinute,
		}[pair[0]]
		if !ok {
			return errors.New("unknown limit")
		}
		if *field, err = strconv.Atoi(pair[1]); err != nil {
			return err
		}
	}
	return nil
}

// setHop sets the behavior of the next hop.
func (s *scene) setHop(arg string) error {
	word, rest, _ := strings.Cut(arg, " ")
	switch word {
	case "extensions":
		s.hop.Extensions = []string{}
		if rest != "-" {
			s.hop.Extensions = strings.Split(rest, ",")
		}
		return nil
	case "timeout":
		return s.setTimeout(strings.Fields(rest))
	case "lmtp":
		s.hop.LMTP, s.next.LMTP = true, true
		return nil
	case "tls":
		s.next.TLS = nexthop.TLSConfig{Mode: nexthop.TLSRequired, Roots: smtptest.Roots(), Name: smtptest.ServerName}
		return nil
	}
	command, reply, ok := strings.Cut(arg, " => ")
	if !ok {
		return errors.New("no =>")
	}
	reply = strings.ReplaceAll(reply, "|", "\n")
	if n, ok := strings.CutPrefix(command, "body "); ok {
		after, err := strconv.ParseInt(n, 10, 64)
		s.hop.Body = &smtptest.BodyFault{After: after, Reply: reply}
		return err
	}
	if later, ok := strings.CutPrefix(command, "second "); ok {
		var times atomic.Int32
		s.hop.Answer = func(c smtptest.Command) string {
			if c.Line == later && times.Add(1) == 2 {
				return reply
			}
			return ""
		}
		return nil
	}
	s.hop.Replies[command] = reply
	return nil
}

// setTimeout sets how long the gate waits for the reply to one command. All other
// waits keep their defaults.
func (s *scene) setTimeout(f []string) (err error) {
	wait := map[string]*time.Duration{
		"GREETING": &s.next.Timeouts.Greeting,
		"EHLO":     &s.next.Timeouts.Mail,
		"MAIL":     &s.next.Timeouts.Mail,
		"RCPT":     &s.next.Timeouts.Rcpt,
		"DATA":     &s.next.Timeouts.Data,
		".":        &s.next.Timeouts.Dot,
	}[f[0]]
	if wait == nil || len(f) != 2 {
		return errors.New("want COMMAND DURATION")
	}
	*wait, err = time.ParseDuration(f[1])
	return err
}

// target returns the gate's next hop, and the server or servers that it connects to.
func (s *scene) target(t *testing.T) (nexthop.Target, []*smtptest.Sink) {
	sinks := []*smtptest.Sink{smtptest.NewSink(t, s.hop)}
	if s.spare {
		sinks = append(sinks, smtptest.NewSink(t, smtptest.Config{Extensions: s.hop.Extensions}))
	}
	var targets []nexthop.Target
	for _, sink := range sinks {
		config := s.next
		config.Addr = sink.Addr()
		target, err := nexthop.NewSMTP(config)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, target)
	}
	if !s.spare {
		return targets[0], sinks
	}
	group, err := nexthop.NewGroup(targets, nexthop.GroupConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return group, sinks
}

func setPolicy(p *smtpfilter.Policy, f []string) error {
	switch f[0] {
	case "headers":
		p.HeaderFields = f[1:]
	case "max_header":
		n, err := strconv.Atoi(f[1])
		p.MaxHeaderBytes = n
		return err
	case "bounces":
		p.CheckBounces = true
	case "domains":
		p.RecipientDomains = f[1:]
	case "valid":
		set := smtpfilter.NewAddressSet(slices.Values(f[1:]))
		p.ValidRecipients = func() *smtpfilter.AddressSet { return set }
	case "exempt":
		p.ExemptRecipients = f[1:]
		if i := slices.Index(f, `"a`); i > 0 { // a quoted local part holds the space
			p.ExemptRecipients = slices.Concat([]string{f[i] + " " + f[i+1]}, f[i+2:])
		}
	case "max_recipients":
		n, err := strconv.Atoi(f[1])
		p.MaxRecipients = n
		return err
	case "contact":
		p.Contact = strings.Join(f[1:], " ")
	case "exempt_client":
		return addPrefix(&p.ExemptClients, f[1])
	case "exempt_authenticated":
		p.ExemptAuthenticated = true
	case "max_hops":
		n, err := strconv.Atoi(f[1])
		p.MaxHops = n
		return err
	case "tarpit":
		d, err := time.ParseDuration(f[1])
		p.Tarpit = d
		return err
	case "tarpit_exempt":
		return addPrefix(&p.TarpitExempt, f[1])
	default:
		return errors.New("unknown policy")
	}
	return nil
}
