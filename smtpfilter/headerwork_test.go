package smtpfilter_test

import (
	"fmt"
	"slices"
	"testing"

	"spamgate/blocklist/sender"
	"spamgate/internal/hostile"
	"spamgate/smtpfilter"
)

// workJudge knows nobody, and counts what it costs to find that out.
type workJudge struct {
	calls int // of Judge
	bytes int // of keys
}

func (j *workJudge) Generation() uint64 { return 1 }

func (j *workJudge) Judge(_ smtpfilter.Stage, address string) (smtpfilter.Verdict, error) {
	j.calls++
	j.bytes += len(address)
	if address != "" && address[len(address)-1] == '@' {
		address += "invalid"
	}
	a, err := sender.Parse(address)
	if err != nil {
		return smtpfilter.Verdict{}, err
	}
	walk := a.Walk(make([]byte, 0, 384))
	for {
		key, ok := walk.Next()
		if !ok {
			return smtpfilter.Verdict{}, nil
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
	maxKept    = 1000 // addresses and forms, and as many more as one field's value may add
)

// checkWork judges a section, and holds what that must not exceed.
func checkWork(t *testing.T, section []byte) {
	t.Helper()
	j := &workJudge{}
	s := workPolicy.ReadHeader(section, []string{"mx.example.org"})
	findings := 0
	for range workPolicy.JudgeHeader(j, s) {
		findings++
	}
	if j.calls > maxCalls || j.bytes > maxKeyData {
		t.Errorf("%d lookups with %d bytes of keys from %d bytes: %.80q", j.calls, j.bytes, len(section), section)
	}
	if findings > 2*maxKept {
		t.Errorf("%d findings from %d bytes: %.80q", findings, len(section), section)
	}
	if kept := len(s.Senders) + len(s.Forms); !s.TooMany() && kept > maxKept {
		t.Errorf("%d addresses and forms, and they are not too many: %.80q", kept, section)
	}
}

// Judging a header does a bounded number of lookups, of bounded length.
func TestHostileHeaderWork(t *testing.T) {
	for _, f := range hostile.Families {
		t.Run(f.Name, func(t *testing.T) { checkWork(t, f.Section(256<<10)) })
	}
}

// A server with many domains still takes a field of many words: they are looked up
// with as many domains as there is time for in any case.
func TestWordsWithManyDomains(t *testing.T) {
	p := workPolicy
	for i := range 1000 {
		p.RecipientDomains = append(slices.Clip(p.RecipientDomains), fmt.Sprintf("domain%d.example.com", i))
	}
	j := &workJudge{}
	s := p.ReadHeader([]byte("From: Mail Delivery System, please do not answer to what this machine has sent you\r\n"), nil)
	for range p.JudgeHeader(j, s) {
	}
	if s.TooMany() || j.calls < 1000 {
		t.Errorf("%d lookups, too many: %t", j.calls, s.TooMany())
	}
}
