package policyservice

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/door"
	"spamgate/internal/door/doortest"
	"spamgate/smtpfilter"
)

// newChecker returns a Checker with a list for each action.
func newChecker(t testing.TB) doortest.Checker {
	t.Helper()
	c, err := doortest.New(
		doortest.List{Name: "always", Entries: "cleared@reject.example\n", List: store.List{Type: blocklist.Allow, Override: true}},
		doortest.List{Name: "blocked", Entries: "reject.example  # bulk mail\n", List: store.List{Action: verdict.Reject, PublicReason: true}},
		doortest.List{Name: "later", Entries: "defer.example\n", List: store.List{Action: verdict.Defer}},
		doortest.Dropped,
		doortest.List{Name: "marked", Entries: "tag.example  # unsure\n", List: store.List{Action: verdict.Tag, PublicReason: true}},
		doortest.List{Name: "tried", Entries: "reject.example\n", List: store.List{Action: verdict.Monitor}},
		doortest.List{Name: "fields", Entries: "fields.example\n", List: store.List{Action: verdict.Reject, Stages: verdict.Header}},
		doortest.List{Name: "idn", Entries: "bücher.example\n", List: store.List{Action: verdict.Reject}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// record is a log and a meter that a test reads while they are written.
type record struct {
	smtpfilter.NoMeter
	mu      sync.Mutex
	lines   bytes.Buffer
	counted []string
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines.Write(b)
}

func (r *record) count(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counted = append(r.counted, s)
}

func (r *record) Message(name string, o smtpfilter.Outcome) { r.count(name + ":" + o.String()) }

func (r *record) Recipient(_ string, o smtpfilter.RecipientOutcome) { r.count(o.String()) }

// takeCounted returns what was counted since the last call.
func (r *record) takeCounted() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.Join(r.counted, " ")
	r.counted = nil
	return all
}

// takeLogged returns the text, action and recipients of each line since the last call.
func (r *record) takeLogged(t *testing.T) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for line := range bytes.Lines(r.lines.Bytes()) {
		var l struct{ Msg, Action, To, Door, Listener string }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if l.Door != Protocol || l.Listener != "beside" {
			t.Errorf("a line of another door: %s", line)
		}
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %s", l.Msg, l.Action, l.To)))
	}
	r.lines.Reset()
	return strings.Join(all, ", ")
}

// service is a running Server.
type service struct {
	*Server
	t     testing.TB
	addr  net.Addr
	conns []*postfix
	record
}

// jsonLog returns the log that takeLogged reads.
func jsonLog(w io.Writer) *slog.Logger { return slog.New(slog.NewJSONHandler(w, nil)) }

// start starts a Server on loopback.
func start(t testing.TB, c verdict.Checker) *service {
	t.Helper()
	s := &service{t: t}
	policy := smtpfilter.Policy{
		ExemptRecipients: []string{"abuse@"}, ExemptAuthenticated: true,
		ExemptClients: []netip.Prefix{netip.MustParsePrefix("192.0.2.9/32"), netip.MustParsePrefix("2001:db8::9/128")},
	}
	if err := policy.Validate(); err != nil {
		t.Fatal(err)
	}
	s.Server = New(door.Config{Name: "beside", Log: jsonLog(&s.record), Meter: &s.record},
		door.Settings{Checker: c, Policy: policy, MaxConnections: 100})
	s.addr = s.listen("tcp", "127.0.0.1:0")
	return s
}

// listen serves one more listener, until the end of the test.
func (s *service) listen(network, addr string) net.Addr {
	s.t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	s.t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			s.t.Error(err)
		}
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
	})
	return l.Addr()
}

// postfix is a connection of Postfix.
type postfix struct {
	net.Conn
	r *bufio.Reader
}

// dial connects to the service.
func (s *service) dial() *postfix {
	s.t.Helper()
	c, err := net.Dial(s.addr.Network(), s.addr.String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	p := &postfix{c, bufio.NewReader(c)}
	s.conns = append(s.conns, p)
	return p
}

// settle waits until what the answers so far say is in the log: that comes before the next
// answer of a connection.
func (s *service) settle() {
	for _, p := range s.conns {
		_, _ = p.ask("request=smtpd_access_policy\nprotocol_state=VRFY\n\n") // some are closed
	}
}

// closed is the answer that is none.
const closed = "closed"

// ask sends a question and returns the action.
func (p *postfix) ask(question string) (string, error) {
	if _, err := io.WriteString(p, question); err != nil {
		return "", err
	}
	return p.answer()
}

// answer reads an answer.
func (p *postfix) answer() (string, error) {
	line, err := p.r.ReadString('\n')
	if errors.Is(err, io.EOF) && line == "" {
		return closed, nil
	}
	if err != nil {
		return line, err
	}
	action, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "action=")
	if end, err := p.r.ReadString('\n'); !ok || end != "\n" || err != nil {
		return "", fmt.Errorf("not an answer: %q, %q, %w", line, end, err)
	}
	return action, nil
}

// question returns a question, from its attributes in the order of testdata/dialogues.txt.
func question(attributes []string) string {
	var b strings.Builder
	b.WriteString("request=smtpd_access_policy\nprotocol_name=ESMTP\nhelo_name=client.example\n")
	for i, a := range attributes {
		if a = strings.Trim(a, " "); i < 4 {
			if a == "-" {
				continue
			}
			a = [...]string{"protocol_state", "instance", "sender", "recipient"}[i] + "=" + a
		}
		b.WriteString(a + "\n")
	}
	return b.String() + "\n"
}

var anID = regexp.MustCompile(`\bid [A-Z2-7]{12}\b`)

// TestDialogues: the dialogues in testdata/dialogues.txt.
func TestDialogues(t *testing.T) {
	text, err := os.ReadFile("testdata/dialogues.txt")
	if err != nil {
		t.Fatal(err)
	}
	lists := newChecker(t)
	var s *service
	var p *postfix
	var ids []string
	number := func(id string) string {
		i := 0
		for i < len(ids) && ids[i] != id {
			i++
		}
		if i == len(ids) {
			ids = append(ids, id)
		}
		return fmt.Sprintf("id ID%d", i+1)
	}
	check := func(what, got, want string) {
		if got != strings.TrimSpace(want) {
			t.Errorf("%s\n got %s\nwant %s", what, got, want)
		}
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		asked, want, isQuestion := strings.Cut(line[1:], "=> ")
		what, rest, _ := strings.Cut(line, ":")
		switch {
		case isQuestion:
			if p == nil || line[0] == '+' {
				p = s.dial()
			}
			action, err := p.ask(question(strings.Split(asked, "|")))
			if err != nil {
				t.Errorf("%s: %v", asked, err)
			}
			check(asked, anID.ReplaceAllStringFunc(action, number), want)
		case what == "counted":
			s.settle()
			check("counted", s.takeCounted(), rest)
		case what == "logged":
			s.settle()
			check("logged", s.takeLogged(t), rest)
		default:
			s, p, ids = start(t, lists), nil, nil
		}
	}
}
