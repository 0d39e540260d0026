package smtpfilter_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/hostile"
	"spamgate/smtpfilter"
)

// workJudge knows nobody, and counts what it costs to find that out.
type workJudge struct {
	calls int // of Judge
	bytes int // of keys
}

func (j *workJudge) Generation() uint64 { return 1 }

func (j *workJudge) Judge(_ context.Context, _ *verdict.Message, q verdict.Query) (verdict.Verdict, error) {
	address := q.Address
	j.calls++
	j.bytes += len(address)
	if address != "" && address[len(address)-1] == '@' {
		address += "invalid"
	}
	a, err := sender.Parse(address)
	if err != nil {
		return verdict.Verdict{}, err
	}
	walk := a.Walk(make([]byte, 0, 384))
	for {
		key, ok := walk.Next()
		if !ok {
			return verdict.Verdict{}, nil
		}
		j.bytes += len(key.Text)
	}
}

// workPolicy judges as the shipped configuration does, with some domains.
var workPolicy = smtpfilter.Policy{
	HeaderFields:     []string{"From", "Sender", "Reply-To"},
	RecipientDomains: []string{"example.org", "example.net", ".example.com"},
}

// What judging one header may cost at most, however it is made.
const (
	maxCalls   = 10_000
	maxKeyData = 8 << 20
	maxKept    = 1000 // addresses and forms, without words beside addresses
)

// checkWork judges a section and checks the bounds on the work.
func checkWork(t *testing.T, section []byte) {
	t.Helper()
	j := &workJudge{}
	s := workPolicy.ReadHeader(section, []string{"mx.example.org"})
	findings := 0
	for range workPolicy.JudgeHeader(context.Background(), j, &verdict.Message{}, s, &verdict.For{}) {
		findings++
	}
	if j.calls > maxCalls || j.bytes > maxKeyData {
		t.Errorf("%d lookups with %d bytes of keys from %d bytes: %.80q", j.calls, j.bytes, len(section), section)
	}
	if findings > maxCalls {
		t.Errorf("%d findings from %d bytes: %.80q", findings, len(section), section)
	}
	kept := len(s.Senders)
	for _, f := range s.Forms {
		if !f.Beside {
			kept++
		}
	}
	if !s.TooMany() && kept > maxKept {
		t.Errorf("%d addresses and forms, and they are not too many: %.80q", kept, section)
	}
}

// TestHostileHeaderWork wants a bounded number of lookups of bounded length for a header.
func TestHostileHeaderWork(t *testing.T) {
	for _, f := range hostile.Families {
		t.Run(f.Name, func(t *testing.T) { checkWork(t, f.Section(256<<10)) })
	}
}

// TestWordsWithManyDomains wants a server with many domains to accept a field with many
// words, and to complete them with as many domains as the cost allows.
func TestWordsWithManyDomains(t *testing.T) {
	p := workPolicy
	for i := range 1000 {
		p.RecipientDomains = append(slices.Clip(p.RecipientDomains), fmt.Sprintf("domain%d.example.com", i))
	}
	j := &workJudge{}
	s := p.ReadHeader([]byte("From: Mail Delivery System, please do not answer to what this machine has sent you\r\n"), nil)
	for range p.JudgeHeader(context.Background(), j, &verdict.Message{}, s, &verdict.For{}) {
	}
	if s.TooMany() || j.calls < 1000 {
		t.Errorf("%d lookups, too many: %t", j.calls, s.TooMany())
	}
}

// TestManyNamesWithCommas wants no header to be refused because of names with a comma.
func TestManyNamesWithCommas(t *testing.T) {
	many := workPolicy
	for i := range 200 {
		many.RecipientDomains = append(slices.Clip(many.RecipientDomains), fmt.Sprintf("domain%d.example.com", i))
	}
	for _, c := range []struct {
		policy smtpfilter.Policy
		n      int
	}{{many, 28}, {workPolicy, 501}, {many, 501}} {
		var names []string
		for i := range c.n {
			names = append(names, fmt.Sprintf("Last%d, First%d <f.l%d@some.example>", i, i, i))
		}
		section := "Reply-To: " + strings.Join(names, ",\r\n ") + "\r\n"
		j := &workJudge{}
		s := c.policy.ReadHeader([]byte(section), []string{"mx.example.org"})
		found := 0
		for range c.policy.JudgeHeader(context.Background(), j, &verdict.Message{}, s, &verdict.For{}) {
			found++
		}
		if s.TooMany() || found != 2*c.n || j.calls > maxCalls {
			t.Errorf("%d names, %d domains: too many: %t; %d findings of %d lookups", c.n, len(c.policy.RecipientDomains), s.TooMany(), found, j.calls)
		}
	}
}
