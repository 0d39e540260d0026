package nexthop

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter/wire"
)

// stepMeter is a Meter that keeps what it is told, without durations.
type stepMeter struct {
	mu   sync.Mutex
	seen []string
}

func (m *stepMeter) add(what, hop string, step Step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, fmt.Sprintf("%s %s", what, step))
	if !strings.Contains(hop, ":") {
		m.seen = append(m.seen, "no name")
	}
}

func (m *stepMeter) Failed(hop string, step Step) { m.add("failed", hop, step) }

func (m *stepMeter) Took(hop string, step Step, d time.Duration) {
	if d <= 0 || d > time.Hour {
		m.add("wrong", hop, step)
	}
	m.add("took", hop, step)
}

// TestMeterSteps has a server fail at each step. The failure must count there, once, and
// the steps before it have their durations.
func TestMeterSteps(t *testing.T) {
	const upToMail = "took connect, took mail"
	for name, c := range map[string]struct {
		replies map[string]string
		config  SMTPConfig
		down    bool
		want    string
	}{
		"good":             {want: upToMail + ", took reply"},
		"refused":          {replies: map[string]string{".": "550 5.7.1 no"}, want: upToMail + ", took reply"},
		"refused sender":   {replies: map[string]string{"MAIL": "550 5.7.1 no"}, want: upToMail},
		"nobody there":     {down: true, want: "failed connect"},
		"no STARTTLS":      {config: SMTPConfig{TLS: TLSConfig{Mode: TLSRequired, Name: "x"}}, want: "failed tls"},
		"full":             {replies: map[string]string{"GREETING": "421 4.3.2 full"}, want: "failed greeting"},
		"refused EHLO":     {replies: map[string]string{"EHLO": "550 5.7.1 no"}, want: "failed greeting"},
		"no XCLIENT":       {config: SMTPConfig{Identity: IdentityXCLIENT}, want: "took connect, failed identity"},
		"itself":           {replies: map[string]string{"GREETING": "220 " + wire.Greeting("gate.example")}, config: SMTPConfig{Hostname: "gate.example"}, want: "failed loop"},
		"hangs up at MAIL": {replies: map[string]string{"MAIL": smtptest.Close}, want: "took connect, failed mail"},
		"hangs up at RCPT": {replies: map[string]string{"RCPT": smtptest.Close}, want: "took connect, failed mail"},
		"hangs up at DATA": {replies: map[string]string{"DATA": smtptest.Close}, want: upToMail + ", failed data"},
		"hangs up at end":  {replies: map[string]string{".": smtptest.Close}, want: upToMail + ", failed reply"},
	} {
		t.Run(name, func(t *testing.T) {
			sink := smtptest.NewSink(t, smtptest.Config{Replies: c.replies, Extensions: []string{}})
			config, meter := c.config, &stepMeter{}
			config.Addr, config.Meter = sink.Addr(), meter
			if c.down {
				config.Addr = smtptest.Unreachable(t)
			}
			_, _ = deliver(newSMTP(t, config), "a@example.com", []byte("text\r\n"), whole)
			if got := strings.Join(meter.seen, ", "); got != c.want {
				t.Errorf("counted %q, want %q", got, c.want)
			}
		})
	}
}

// TestMeterInterrupted has a client leave in the middle of a message, which is not the next
// hop's failure.
func TestMeterInterrupted(t *testing.T) {
	meter := &stepMeter{}
	hop := newSMTP(t, SMTPConfig{Addr: smtptest.NewSink(t).Addr(), Meter: meter})
	transaction, message, err := begin(hop, "a@example.com")
	if err != nil {
		t.Fatal(err)
	}
	transaction.Abort()
	if _, err := message.Write([]byte("text\r\n")); err == nil {
		t.Error("written after Abort")
	}
	if err := hop.Probe(t.Context()); err != nil { // does not count either
		t.Error(err)
	}
	if got := strings.Join(meter.seen, ", "); got != "took connect, took mail" {
		t.Errorf("counted %q", got)
	}
}

// TestMeterAbort has a client leave while the next hop does not answer.
func TestMeterAbort(t *testing.T) {
	asked := make(chan struct{})
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{}, Answer: func(c smtptest.Command) string {
		if c.Verb() != "MAIL" {
			return ""
		}
		close(asked)
		return smtptest.Silence
	}})
	meter := &stepMeter{}
	transaction := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Meter: meter}).Begin(Envelope{Client: testClient, From: "a@example.com"})
	go func() {
		<-asked
		transaction.Abort()
	}()
	if _, err := transaction.Rcpt(t.Context(), "b@example.net", nil); !errors.Is(err, ErrAborted) {
		t.Error(err)
	}
	if got := strings.Join(meter.seen, ", "); got != "took connect" {
		t.Errorf("counted %q", got)
	}
}

// TestMeterLogin has logins that fail because of the next hop, and one because of the
// password.
func TestMeterLogin(t *testing.T) {
	for reply, want := range map[string]string{
		"535 5.7.8 no":      "took connect",
		"250 2.0.0 strange": "took connect, failed login",
		smtptest.Close:      "took connect, failed login",
	} {
		meter := &stepMeter{}
		sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"AUTH PLAIN"}, Replies: map[string]string{"AUTH": reply}})
		hop := newSMTP(t, SMTPConfig{Addr: sink.Addr(), Meter: meter})
		_, _, _ = hop.Authenticate(t.Context(), Client{}, "PLAIN AGEAYg==", nil)
		if got := strings.Join(meter.seen, ", "); got != want {
			t.Errorf("%q: counted %q, want %q", reply, got, want)
		}
	}
}

// TestMeterMaildir delivers into a Maildir, and into one whose directory is gone.
func TestMeterMaildir(t *testing.T) {
	dir, meter := filepath.Join(t.TempDir(), "mail"), &stepMeter{}
	target, err := New("maildir:"+dir, SMTPConfig{Meter: meter})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, _ = deliver(target, "a@example.com", []byte("text\r\n"), whole)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"took reply", "failed store"}; !slices.Equal(meter.seen, want) {
		t.Errorf("counted %q, want %q", meter.seen, want)
	}
}
