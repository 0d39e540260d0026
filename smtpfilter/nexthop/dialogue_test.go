package nexthop

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// TestDialogues plays every file of testdata/dialogues. Package smtptest describes
// the format and what the next hop plays. The set-up says how the target is made:
//
//	reuse mail=50ms …    options: reuse, chunks, lmtp, timeouts, tls=required (or another mode),
//	                     tlsname=next.example, roots=none, pin=right, identity=xclient
//	                     (or another), proxy=2, messages=2, gate=ID
//	from BYTES           the timeouts begin when we send bytes that begin so
//
// The other steps are calls of ours and their results:
//
//	> client 192.0.2.8:1 joe  sets the client for the next calls, and its login: the name
//	                     is host.example. "stranger" has neither name nor address
//	> rcpt b@example.net calls a method: mail FROM [PARAM…] (Begin), rcpt TO
//	                     [PARAM…], data [raw|binary], write BYTES,
//	                     flush, commit, abort, relay (CheckRelay), probe; auth ARGS | ANSWER…
//	                     (Authenticate), login FROM [PARAM…] (Login.Begin), logout
//	< 250 2.1.5 Ok       what the last call returned: a reply (its lines joined
//	                     by " / "), "error TEXT" with a part of the error,
//	                     "lost TEXT" if it is ErrReplyLost as well, or
//	                     "early TEXT" if it is a *ReplyError with that reply
//	> each 250 a | 552 b the Replies after the last commit; "-" for none
//	> offers DSN SIZE    the keywords of Extensions
//	> state down         the result of States: up, down or unknown
//	> path a b           the result of Path
//	> gone               ends the client's connection to us
//	> challenges A | B   the texts of the challenges of the last auth
//	> go                 ends a HOLD
//	> idle 1             waits until so many connections are kept
//	> dead               waits until the kept connection has something to read
//	> pending            waits until the transaction's has
//	> closed 1           waits until so many connections are over
func TestDialogues(t *testing.T) { smtptest.Play(t, playDialogue) }

// waitFor waits for a condition that becomes true without our doing.
func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// driver is our side of a dialogue.
type driver struct {
	t       *testing.T
	server  *smtptest.Script
	hop     *SMTP
	client  Client
	leave   func() // ends client.Gone
	tx      Transaction
	login   Login
	asked   []string // challenges
	message Message
	reply   wire.Reply // of the last call
	err     error
}

func playDialogue(t *testing.T, file *smtptest.Dialogue) {
	config := SMTPConfig{Hostname: "gate.example", ProbeInterval: -1}
	config.TLS.Name, config.TLS.Roots = smtptest.ServerName, smtptest.Roots()
	file.Each(t, file.SetUp, func(l smtptest.Line) error {
		if l.Verb == "from" {
			config.Dial = dialPatient(smtptest.Expand(l.Text))
			return nil
		}
		return parseOptions(&config, l.Verb+" "+l.Text)
	})
	var server, ours []smtptest.Line
	for _, l := range file.Steps {
		if l.OnWire() {
			server = append(server, l)
		} else {
			ours = append(ours, l)
		}
	}
	d := driver{t: t, server: smtptest.NewScript(t, server), client: testClient}
	config.Addr = d.server.Addr()
	var err error
	if d.hop, err = NewSMTP(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.hop.Close() })
	file.Each(t, ours, d.step)
	d.hop.Close()
	d.server.Wait()
}

// options are words of the set-up.
var options = map[string]func(*SMTPConfig){
	"tls=opportunistic": func(c *SMTPConfig) { c.TLS.Mode = TLSOpportunistic },
	"tls=required":      func(c *SMTPConfig) { c.TLS.Mode = TLSRequired },
	"tls=implicit":      func(c *SMTPConfig) { c.TLS.Mode = TLSImplicit },
	"tlsname=ip":        func(c *SMTPConfig) { c.TLS.Name = "" },
	"tlsname=wrong":     func(c *SMTPConfig) { c.TLS.Name = "other.example" },
	"roots=none":        func(c *SMTPConfig) { c.TLS.Roots = x509.NewCertPool() },
	"pin=right":         func(c *SMTPConfig) { c.TLS.Pins = [][sha256.Size]byte{{}, smtptest.Pin()} },
	"pin=wrong":         func(c *SMTPConfig) { c.TLS.Pins = [][sha256.Size]byte{{}} },
	"identity=xclient":  func(c *SMTPConfig) { c.Identity = IdentityXCLIENT },
	"identity=xforward": func(c *SMTPConfig) { c.Identity = IdentityXFORWARD },
	"identity=none":     func(c *SMTPConfig) { c.Identity = IdentityNone },
	"proxy=1":           func(c *SMTPConfig) { c.Proxy = 1 },
	"proxy=2":           func(c *SMTPConfig) { c.Proxy = 2 },
}

func parseOptions(config *SMTPConfig, text string) error {
	timeouts := map[string]*time.Duration{
		"connect": &config.Timeouts.Connect, "greeting": &config.Timeouts.Greeting, "mail": &config.Timeouts.Mail, "rcpt": &config.Timeouts.Rcpt,
		"data": &config.Timeouts.Data, "dot": &config.Timeouts.Dot, "quit": &config.Timeouts.Quit,
		"write": &config.Timeouts.Write, "hello": &config.Timeouts.Hello, "suspect": &config.Timeouts.Suspect,
	}
	flags := map[string]*bool{"reuse": &config.Reuse, "lmtp": &config.LMTP, "chunks": &config.Chunks}
	for word := range strings.FieldsSeq(text) {
		if option := options[word]; option != nil {
			option(config)
			continue
		}
		name, value, _ := strings.Cut(word, "=")
		if name == "gate" {
			config.GateID = value
			continue
		}
		if name == "messages" {
			config.MessagesPerConnection, _ = strconv.Atoi(value)
			continue
		}
		if flag := flags[name]; flag != nil {
			*flag = true
			continue
		}
		duration, err := time.ParseDuration(value)
		if err != nil || timeouts[name] == nil {
			return fmt.Errorf("option %q: %v", word, err)
		}
		*timeouts[name] = duration
	}
	return nil
}

// step plays one of our steps.
func (d *driver) step(l smtptest.Line) error {
	switch l.Verb {
	case "<":
		return d.expect(l.Text)
	case ">":
		words := strings.Fields(l.Text)
		_, text, _ := strings.Cut(l.Text, " ")
		return d.call(words, text)
	}
	return errors.New("unknown step")
}

// call carries out one call: its words, and the text after the first one.
func (d *driver) call(words []string, text string) error {
	ctx := context.Background()
	switch words[0] {
	case "mail":
		from := strings.Trim(words[1], "<>")
		d.tx = d.hop.Begin(Envelope{Client: d.client, From: from, Params: words[2:], ID: "id-1"})
		d.message = nil
	case "login":
		d.tx = d.login.Begin(Envelope{Client: d.client, From: words[1], Params: words[2:], ID: "id-1"})
		d.message = nil
	case "client":
		d.setClient(words[1:])
	case "auth":
		d.authenticate(ctx, text)
	case "logout":
		return d.login.Close()
	case "probe":
		d.reply, d.err = wire.Reply{}, d.hop.Probe(ctx)
		return nil
	case "offers":
		if got := keywords(d.hop.Extensions()); !slices.Equal(got, words[1:]) {
			return fmt.Errorf("%v", got)
		}
	case "state":
		s := stateOf(d.hop)
		if got := map[bool]string{false: "unknown", true: map[bool]string{false: "down", true: "up"}[s.Up]}[s.Known]; got != words[1] {
			return errors.New(got)
		}
	case "path":
		if got := Path(d.hop); !slices.Equal(got, words[1:]) {
			return fmt.Errorf("%q", got)
		}
	case "gone":
		d.leave()
	case "each":
		var replies []string
		for _, r := range d.message.(EachReply).Replies() {
			replies = append(replies, r.String())
		}
		if got := cmp.Or(strings.Join(replies, " | "), "-"); got != text {
			return fmt.Errorf("%q", got)
		}
	case "challenges":
		if got := strings.Join(d.asked, " | "); got != text {
			return fmt.Errorf("%q", got)
		}
	case "rcpt":
		d.reply, d.err = d.tx.Rcpt(ctx, words[1], words[2:])
	case "data":
		format := map[string]Format{"data": Stuffed, "raw": Raw, "binary": Binary}[words[len(words)-1]]
		d.message, d.reply, d.err = d.tx.Data(ctx, format)
	case "write":
		d.reply = wire.Reply{}
		_, d.err = d.message.Write([]byte(smtptest.Expand(text)))
	case "flush":
		d.reply = wire.Reply{}
		d.err = d.message.Flush()
	case "commit":
		d.reply, d.err = d.message.Commit(ctx)
	case "abort":
		d.tx.Abort()
	case "relay":
		var relays bool
		relays, d.reply, d.err = d.hop.CheckRelay(ctx)
		if relays != d.reply.Positive() {
			return fmt.Errorf("relays %v, reply %v", relays, d.reply)
		}
	case "idle":
		waitFor(d.t, words[0], func() bool { return d.idle() == words[1] })
	case "go":
		d.server.Continue()
	case "dead":
		waitFor(d.t, words[0], func() bool { return !isQuiet(d.hop.idle[0]) })
	case "pending":
		waitFor(d.t, words[0], func() bool { return !isQuiet(d.tx.(*transaction).conn) })
	case "closed":
		waitFor(d.t, words[0], func() bool { return strconv.Itoa(d.server.Conns()-d.server.Open()) == words[1] })
	default:
		return errors.New("unknown call")
	}
	return nil
}

// setClient sets the client: its address, and its login.
func (d *driver) setClient(words []string) {
	if words[0] == "stranger" {
		d.client = Client{}
		return
	}
	var gone context.Context
	gone, d.leave = context.WithCancel(context.Background())
	d.client = Client{
		Gone:  gone,
		Addr:  netip.MustParseAddrPort(words[0]),
		Local: netip.MustParseAddrPort("198.51.100.25:25"),
		Helo:  "host.example",
		Proto: "ESMTP",
	}
	if len(words) > 1 {
		d.client.Login = words[1]
	}
}

func (d *driver) authenticate(ctx context.Context, text string) {
	words := strings.Split(text, " | ")
	answers := words[1:]
	d.asked = nil
	d.login, d.reply, d.err = d.hop.Authenticate(ctx, d.client, words[0], func(challenge wire.Reply) (string, error) {
		d.asked = append(d.asked, challenge.String())
		if len(answers) == 0 {
			return "", errStop
		}
		answer := answers[0]
		answers = answers[1:]
		return answer, nil
	})
	if (d.login != nil) != (d.err == nil && d.reply.Code == codeLoggedIn) {
		d.t.Errorf("login %v with reply %v, error %v", d.login, d.reply, d.err)
	}
	for _, secret := range append(words[1:], words[0]) {
		if d.err != nil && strings.Contains(d.err.Error(), secret) {
			d.t.Errorf("the error %q tells what the client said", d.err)
		}
	}
}

// isQuiet checks the socket itself if there is no TLS: quiet must not miss anything.
func isQuiet(c *conn) bool {
	if c.tls == nil {
		pending, err := wire.Pending(c.socket)
		return !pending && err == nil
	}
	quiet, _ := c.quiet()
	return quiet
}

func (d *driver) idle() string {
	d.hop.mu.Lock()
	defer d.hop.mu.Unlock()
	return strconv.Itoa(len(d.hop.idle))
}

func (d *driver) expect(want string) error {
	kind, text, _ := strings.Cut(want, " ")
	var early *ReplyError
	switch kind {
	case "error", "lost":
		if d.err == nil || !strings.Contains(d.err.Error(), text) || errors.Is(d.err, ErrReplyLost) != (kind == "lost") {
			return fmt.Errorf("reply %q, error %v", d.reply, d.err)
		}
	case "early":
		if !errors.As(d.err, &early) || early.Reply.String() != text {
			return fmt.Errorf("reply %q, error %v", d.reply, d.err)
		}
	default:
		if d.err != nil || d.reply.String() != want {
			return fmt.Errorf("reply %q, error %v", d.reply, d.err)
		}
	}
	return nil
}

var testClient = Client{
	Name:  "mx.example.org",
	Addr:  netip.MustParseAddrPort("192.0.2.7:4711"),
	Helo:  "mx.example.org",
	Proto: "ESMTP",
}

// checkGoroutines fails the test when, after everything else it cleans up, more
// goroutines run than now.
func checkGoroutines(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		waitFor(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
	})
}
