package nexthop

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"spamgate/internal/smtptest"
)

// TestIdentities sends mail of clients that differ in one attribute or more to servers
// that accept some attributes, refuse some, and offer others after XCLIENT. The server
// remembers all attributes, longer than any real one does. At each MAIL all of them must
// be those of that mail's client.
func TestIdentities(t *testing.T) {
	t.Parallel()
	const senders, mails = 3, 12
	seeds := 150
	if testing.Short() {
		seeds = 40
	}
	var unlike int // mails that came without XCLIENT after a client that differs
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newModel(seed, r)
		sink := smtptest.NewSink(t, smtptest.Config{Answer: m.answer})
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Reuse: r.IntN(8) > 0, MaxIdle: 1 + r.IntN(4), Identity: m.identity})
		clients := modelClients(r)
		var group sync.WaitGroup
		for g := range senders {
			r := rand.New(rand.NewPCG(seed, uint64(g+2)))
			group.Go(func() {
				for i := range mails {
					m.send(t, hop, r, fmt.Sprintf("m%d-%d", g, i), clients[r.IntN(len(clients))])
				}
			})
		}
		group.Wait()
		hop.Close()
		sink.Close()
		m.check(t)
		unlike += m.unlike()
		if v := sink.Violations(); v != nil {
			t.Errorf("seed %d: %q", seed, v)
		}
		if t.Failed() {
			return
		}
	}
	if unlike < seeds/5 {
		t.Errorf("XCLIENT was left out %d times for another client: these servers show nothing", unlike)
	}
}

// modelClients returns clients, many of which differ in one attribute only.
func modelClients(r *rand.Rand) []Client {
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	addr := func() netip.AddrPort {
		ip := netip.MustParseAddr(pick("192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"))
		return netip.AddrPortFrom(ip, uint16(r.IntN(4)))
	}
	change := []func(c *Client){
		func(c *Client) { c.Addr = addr() },
		func(c *Client) { c.Addr = netip.AddrPort{} },
		func(c *Client) { c.Local = addr() },
		func(c *Client) { c.Name = pick("", "a.example", "b.example", strings.Repeat("n", 250)) },
		func(c *Client) { c.Helo = pick("", "a.example", "b.example", strings.Repeat("h", 250)) },
		func(c *Client) { c.Proto = pick("", "SMTP", "ESMTP") },
		func(c *Client) { c.Login = pick("", "joe", "ann", strings.Repeat("l", 250)) },
		func(c *Client) {
			name := pick("", "looked-up.example")
			c.Name, c.LookupName = "", func(context.Context) string { return name }
		},
	}
	clients := []Client{{}}
	for _, c := range change {
		c(&clients[0])
	}
	for range 6 {
		c := clients[r.IntN(len(clients))]
		for range 1 + r.IntN(2) {
			change[r.IntN(len(change))](&c)
		}
		clients = append(clients, c)
	}
	return clients
}

// model is a server that remembers all attributes that it receives.
type model struct {
	seed     uint64
	identity Identity
	xclient  []string // the attributes that it offers to begin with
	xforward []string
	after    string // what becomes of xclient once it was told: "same", "none" or "other"
	strict   bool   // it refuses now and then
	pipeline bool

	mu         sync.Mutex
	sent       map[string]Envelope // by ID
	conns      map[int]*modelConn
	modelMails []modelMail
}

func newModel(seed uint64, r *rand.Rand) *model {
	return &model{
		seed:     seed,
		identity: []Identity{IdentityAuto, IdentityAuto, IdentityXCLIENT, IdentityXFORWARD, IdentityNone}[r.IntN(5)],
		xclient:  someXCLIENT(r),
		xforward: someOf(r, "NAME", "ADDR", "PORT", "PROTO", "HELO", "IDENT", "SOURCE"),
		after:    []string{"same", "same", "none", "other"}[r.IntN(4)],
		strict:   r.IntN(2) == 0,
		pipeline: r.IntN(4) > 0,
		sent:     map[string]Envelope{},
		conns:    map[int]*modelConn{},
	}
}

// someXCLIENT returns attributes that a server may offer, or none: one at least says
// something about every client.
func someXCLIENT(r *rand.Rand) []string {
	all := someOf(r, "NAME", "ADDR", "PORT", "PROTO", "HELO", "LOGIN", "DESTADDR", "DESTPORT", "COLOUR")
	if !slices.ContainsFunc(all, func(a string) bool { return a != "PROTO" && a != "COLOUR" }) {
		return nil
	}
	return all
}

// someOf returns some words, or all.
func someOf(r *rand.Rand, words ...string) []string {
	part := r.Float64() * 1.5
	return slices.DeleteFunc(words, func(string) bool { return r.Float64() > part })
}

// modelConn is what the server knows about one connection.
type modelConn struct {
	r       *rand.Rand
	offered []string // attributes of XCLIENT, now
	taken   []string // those that were offered when the last XCLIENT came
	hello   string
	told    bool
	sayings int // XCLIENT commands
	xclient map[string]string
	forward map[string]string
	refused map[string]bool // attributes of XFORWARD
}

// modelMail is what the server knew at a MAIL.
type modelMail struct {
	modelConn
	conn int
	id   string
}

// send brings one mail, to its end or not.
func (m *model) send(t *testing.T, hop *SMTP, r *rand.Rand, id string, client Client) {
	ctx := t.Context()
	gone, leave := context.WithCancel(ctx)
	defer leave()
	client.Gone = gone
	env := Envelope{Client: client, From: id + "@example.com", ID: id}
	if r.IntN(6) == 0 {
		env.Logged = &Client{Addr: netip.MustParseAddrPort("203.0.113.9:9"), Name: "logged.example", Helo: "logged.example", Proto: "SMTP"}
	}
	m.mu.Lock()
	m.sent[id] = env
	m.mu.Unlock()
	tx := hop.Begin(env)
	defer tx.Abort()
	reply, err := tx.Rcpt(ctx, "b@example.net", nil)
	if !m.strict && m.after == "same" && (err != nil || !reply.Positive()) {
		t.Errorf("seed %d, %s: %v, %v", m.seed, id, reply, err)
	}
	if err != nil || !reply.Positive() || r.IntN(4) == 0 {
		return
	}
	message, _, err := tx.Data(ctx, Stuffed)
	if err == nil && message != nil && r.IntN(8) > 0 {
		message.Commit(ctx)
	}
}

// answer records a command and returns the reply.
func (m *model) answer(c smtptest.Command) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.conns[c.Conn]
	if s == nil {
		s = &modelConn{r: rand.New(rand.NewPCG(m.seed, uint64(1000+c.Conn))),
			xclient: map[string]string{}, forward: map[string]string{}, refused: map[string]bool{}}
		m.conns[c.Conn] = s
	}
	refuses := m.strict && s.r.IntN(10) == 0
	switch c.Verb() {
	case "EHLO":
		return m.answerEHLO(s, c.Line)
	case "XCLIENT":
		s.sayings++
		if refuses {
			return "550 5.7.0 no"
		}
		s.tellXCLIENT(c.Line)
		return "220 sink.example ESMTP"
	case "XFORWARD":
		if m.strict && strings.Contains(c.Line, "ADDR=IPV6") || refuses {
			s.refuseXFORWARD(c.Line)
			return "501 5.5.4 no"
		}
		maps.Copy(s.forward, attributesIn(c.Line))
	case "MAIL":
		known := *s
		known.xclient, known.forward, known.refused = maps.Clone(s.xclient), maps.Clone(s.forward), maps.Clone(s.refused)
		id, _, _ := strings.Cut(strings.TrimPrefix(c.Line, "MAIL FROM:<"), "@")
		m.modelMails = append(m.modelMails, modelMail{known, c.Conn, id})
		if refuses {
			return "501 5.1.7 Bad sender address syntax"
		}
	case "RSET", ".":
		clear(s.forward)
		clear(s.refused)
		if refuses {
			return "550 5.0.0 no"
		}
	}
	return ""
}

// answerEHLO offers what it is to offer. After XCLIENT that may be something else.
func (m *model) answerEHLO(s *modelConn, line string) string {
	s.hello = strings.TrimPrefix(line, "EHLO ")
	s.offered = m.xclient
	if s.told && m.after == "none" {
		s.offered = nil
	}
	if s.told && m.after == "other" {
		s.offered = someXCLIENT(s.r)
	}
	reply := "250-sink.example\n"
	if len(s.offered) > 0 {
		reply += "250-XCLIENT " + strings.Join(s.offered, " ") + "\n"
	}
	if len(m.xforward) > 0 {
		reply += "250-XFORWARD " + strings.Join(m.xforward, " ") + "\n"
	}
	if m.pipeline {
		reply += "250-PIPELINING\n"
	}
	return reply + "250 8BITMIME"
}

// tellXCLIENT takes what XCLIENT says. As with Postfix, HELO, PROTO and LOGIN are forgotten
// at the next one, and nothing else is.
func (s *modelConn) tellXCLIENT(line string) {
	s.told, s.taken = true, s.offered
	for _, a := range []string{"HELO", "PROTO", "LOGIN"} {
		delete(s.xclient, a)
	}
	maps.Copy(s.xclient, attributesIn(line))
}

func (s *modelConn) refuseXFORWARD(line string) {
	for a := range attributesIn(line) {
		s.refused[a] = true
	}
}

// attributesIn returns the attributes of a command.
func attributesIn(line string) map[string]string {
	all := map[string]string{}
	for _, word := range strings.Fields(line)[1:] {
		name, value, _ := strings.Cut(word, "=")
		all[name] = value
	}
	return all
}

// attributesOf are a client's attributes as both commands tell them. The plain twin of
// xclientAttributes has values that need no encoding.
func attributesOf(c *Client) map[string]string {
	unknown := func(v string) string {
		if v == "" {
			return "[UNAVAILABLE]"
		}
		return v
	}
	address := func(a netip.AddrPort) (addr, port string) {
		if a.Addr().IsValid() {
			addr = a.Addr().String()
		}
		if a.Addr().Is6() {
			addr = "IPV6:" + addr
		}
		if a.Port() > 0 {
			port = fmt.Sprint(a.Port())
		}
		return unknown(addr), unknown(port)
	}
	name := c.Name
	if name == "" && c.LookupName != nil {
		name = c.LookupName(context.Background())
	}
	all := map[string]string{"NAME": unknown(name), "HELO": unknown(c.Helo), "PROTO": unknown(c.Proto), "LOGIN": unknown(c.Login)}
	all["ADDR"], all["PORT"] = address(c.Addr)
	all["DESTADDR"], all["DESTPORT"] = address(c.Local)
	return all
}

// check compares what the server knew at each MAIL with the mail's client.
func (m *model) check(t *testing.T) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mail := range m.modelMails {
		env := m.sent[mail.id]
		fail := func(format string, args ...any) {
			t.Helper()
			t.Errorf("seed %d, identity %d, connection %d, %s of %+v:\n"+format,
				append([]any{m.seed, m.identity, mail.conn, mail.id, attributesOf(&env.Client)}, args...)...)
		}
		m.checkXCLIENT(mail, env, fail)
		m.checkXFORWARD(mail, env, fail)
	}
}

func (m *model) checkXCLIENT(mail modelMail, env Envelope, fail func(string, ...any)) {
	may := m.identity == IdentityAuto || m.identity == IdentityXCLIENT
	switch {
	case mail.told && !may:
		fail("XCLIENT was said")
	case !mail.told && m.identity == IdentityXCLIENT, !mail.told && may && len(mail.offered) > 0:
		fail("no XCLIENT was said, which was offered: %q", mail.offered)
	}
	hello := "gate.example"
	if mail.told && env.Client.Helo != "" {
		hello = env.Client.Helo
	}
	if mail.hello != hello {
		fail("EHLO %q, want %q", mail.hello, hello)
	}
	want := attributesOf(&env.Client)
	for name, value := range mail.xclient {
		if value != want[name] {
			fail("XCLIENT %s=%s, want %s", name, value, want[name])
		}
	}
	for _, name := range mail.taken {
		// What comes in more than one command may be forgotten, and EHLO says it once more.
		if name == "COLOUR" || name == "HELO" || name == "PROTO" {
			continue
		}
		if mail.xclient[name] == "" {
			fail("XCLIENT did not say %s", name)
		}
	}
}

func (m *model) checkXFORWARD(mail modelMail, env Envelope, fail func(string, ...any)) {
	client := env.Logged
	named := client != nil || !mail.told
	if client == nil {
		client = &env.Client
	}
	want := map[string]string{}
	if m.identity != IdentityNone {
		if named {
			want = attributesOf(client)
		}
		want["IDENT"] = mail.id
	}
	want["SOURCE"] = "REMOTE"
	for name, value := range mail.forward {
		if value != want[name] {
			fail("XFORWARD %s=%s, want %q", name, value, want[name])
		}
	}
	for _, name := range m.xforward {
		if mail.forward[name] == "" && want[name] != "" && !mail.refused[name] {
			fail("XFORWARD did not say %s", name)
		}
	}
}

// unlike counts the mails that came on a connection without an XCLIENT since the mail before,
// of another client than that was.
func (m *model) unlike() int {
	n := 0
	last := map[int]modelMail{}
	for _, mail := range m.modelMails {
		before, ok := last[mail.conn]
		if ok && mail.told && mail.sayings == before.sayings {
			a, b := m.sent[mail.id].Client, m.sent[before.id].Client
			if !maps.Equal(attributesOf(&a), attributesOf(&b)) {
				n++
			}
		}
		last[mail.conn] = mail
	}
	return n
}
