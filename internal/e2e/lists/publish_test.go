package lists

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// publishing is a gate that publishes its managed list blocked.
type publishing struct {
	*harness.Gate
	certificate harness.Certificate
	publicKey   string
	port        string
}

const publishToken = "0123456789abcdef"

func startPublishing(t *testing.T, start func(s harness.Setup) *harness.Gate) publishing {
	t.Helper()
	dir := t.TempDir()
	p := publishing{certificate: harness.NewCertificate(t, "localhost")}
	key := filepath.Join(dir, "publish.key")
	text := (&harness.Gate{Dir: dir}).Lists(t, 0, "publish", "--new-key", key)
	_, p.publicKey, _ = strings.Cut(strings.TrimSpace(text), "public_key = ")
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte(publishToken+"  # the other MX\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Gate = start(harness.Setup{
		Tables: fmt.Sprintf("[publish]\naddr = \"127.0.0.1:0\"\ntls_cert = %q\ntls_key = %q\nkey = %q\ntokens = %q\n",
			p.certificate.Cert, p.certificate.Key, key, tokens),
		Lists: "[[list]]\nname = \"blocked\"\nmanaged = true\ndefault = true\npublish = true\n",
	})
	_, p.port, _ = strings.Cut(p.WaitRecord("published lists").Text("addr"), ":")
	return p
}

// reader returns the lists of a gate that fetches from p once a day, unless p tells of changes.
func (p publishing) reader(token string) harness.Setup {
	return harness.Setup{Lists: fmt.Sprintf("[[list]]\nname = \"blocked\"\nurl = \"https://localhost:%s/blocked.txt?token=%s\"\npublic_key = %s\ntls_ca = %q\nrefresh = \"24h\"\noptional = true\n",
		p.port, token, p.publicKey, p.certificate.Cert)}
}

// TestPublish has a gate that learns at once what is added and removed at another, over a
// handover of that one, and without what is private.
func TestPublish(t *testing.T) {
	t.Parallel()
	p := startPublishing(t, func(s harness.Setup) *harness.Gate { return harness.StartGate(t, s) })
	p.Lists(t, 0, "add", "first.example", "--reason", "known", "--note", "private")
	r := harness.StartGate(t, p.reader(publishToken))
	harness.WantRefusal(t, harness.WaitVerdict(t, r.Addr, "x@first.example", "550"), "x@first.example", "blocked", "known")

	var took []time.Duration
	for i := range harness.IfFull(5, 200) {
		domain := fmt.Sprintf("new%d.example", i)
		p.Lists(t, 0, "add", domain, "--reason", "test")
		added := time.Now()
		harness.WaitVerdict(t, r.Addr, "x@"+domain, "550")
		took = append(took, time.Since(added))
	}
	slices.Sort(took)
	t.Logf("live at the other gate after %v (median), %v (longest of %d)", took[len(took)/2], took[len(took)-1], len(took))
	p.Lists(t, 0, "remove", "first.example", "--reason", "test")
	harness.WaitVerdict(t, r.Addr, "x@first.example", "250")

	for _, path := range []string{filepath.Join(p.Dir, "state/publish/blocked.txt"), filepath.Join(r.Dir, "state/copies/blocked/list")} {
		if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "private") || !strings.Contains(string(text), "new0.example") {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if n := len(r.Records("list not fetched")); n > 0 {
		t.Errorf("%d fetches failed", n)
	}
}

// TestPublishTokens has gates without a token, or with another.
func TestPublishTokens(t *testing.T) {
	t.Parallel()
	p := startPublishing(t, func(s harness.Setup) *harness.Gate { return harness.StartGate(t, s) })
	r := harness.StartGate(t, p.reader("0123456789abcdeg"))
	if out := r.Lists(t, 2, "fetch"); !strings.Contains(out, "401 Unauthorized: ask the list's publisher for access") || strings.Contains(out, "abcdeg") {
		t.Error(out)
	}
}

// TestPublishFails has a gate that cannot write what it publishes, for a while.
func TestPublishFails(t *testing.T) {
	t.Parallel()
	p := startPublishing(t, func(s harness.Setup) *harness.Gate { return harness.StartGate(t, s) })
	p.WaitRecord("list published")
	r := harness.StartGate(t, p.reader(publishToken))
	dir := filepath.Join(p.Dir, "state", "publish")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	harness.WriteFile(t, dir, "")
	p.Lists(t, 0, "add", "first.example", "--reason", "test")
	p.WaitRecord("list not published")
	if out := p.Command(t, 1, "health"); !strings.Contains(out, "list blocked: others fetch an earlier version: ") {
		t.Error(out)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	p.Lists(t, 0, "add", "second.example", "--reason", "test")
	harness.WaitVerdict(t, r.Addr, "x@second.example", "550")
	p.Command(t, 0, "health")
	if out := p.Lists(t, 0, "status", "blocked"); !strings.Contains(out, "sequence") || strings.Contains(out, "not published") {
		t.Error(out)
	}
}
