package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/defaultconfig"
)

// An Example is a configuration of docs/examples as an operator copies it. Only its
// addresses and certificates are changed, and the shipped lists are beside it.
type Example struct {
	t     testing.TB
	shown string      // the file
	Text  string      // the configuration
	Cert  Certificate // the gate's
	Env   []string    // the gate's environment, besides the test's
}

// GateName is the gate's host name in the examples.
const GateName = "mx.example.org"

// OpenExample reads an example and gives it an address and a certificate.
func OpenExample(t testing.TB, name string) *Example {
	t.Helper()
	shown, err := os.ReadFile("../../../docs/examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	e := &Example{t: t, shown: string(shown), Text: string(shown), Cert: NewCertificate(t, GateName)}
	e.Replace(`addr = ":25"`, `addr = "127.0.0.1:0"`)
	e.Replace(`dir = "/var/lib/spamgate"`, `dir = "state"`)
	e.Replace(`"/etc/ssl/mx.example.org.pem"`, fmt.Sprintf("%q", e.Cert.Cert))
	e.Replace(`"/etc/ssl/private/mx.example.org.key"`, fmt.Sprintf("%q", e.Cert.key))
	return e
}

// Replace replaces the only occurrence of a text in the configuration.
func (e *Example) Replace(old, with string) {
	e.t.Helper()
	if n := strings.Count(e.Text, old); n != 1 {
		e.t.Fatalf("%q is there %d times", old, n)
	}
	e.Text = strings.Replace(e.Text, old, with, 1)
}

// Lines returns the lines that the example shows in its comments, between
//
//	# >>> name
//	# <<<
func (e *Example) Lines(name string) string {
	e.t.Helper()
	_, rest, found := strings.Cut(e.shown, "\n# >>> "+name+"\n")
	block, _, ended := strings.Cut(rest, "\n# <<<\n")
	if !found || !ended {
		e.t.Fatalf("there is no %s", name)
	}
	var lines []string
	for line := range strings.SplitSeq(block, "\n") {
		lines = append(lines, strings.TrimPrefix(line, "# "))
	}
	return strings.Join(lines, "\n")
}

// ReplaceIn returns lines with the only occurrence of a text replaced.
func (e *Example) ReplaceIn(lines, old, with string) string {
	e.t.Helper()
	if strings.Count(lines, old) != 1 {
		e.t.Fatalf("%q is not there once in:\n%s", old, lines)
	}
	return strings.Replace(lines, old, with, 1)
}

// Start checks the configuration with "config check" and starts a gate with it.
func (e *Example) Start() *Gate {
	e.t.Helper()
	dir := e.t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "lists"), defaultconfig.Lists()); err != nil {
		e.t.Fatal(err)
	}
	// The test reads the log; it adds nothing else.
	WriteFile(e.t, filepath.Join(dir, "config.toml"), e.Text+"\n[log]\nformat = \"json\"\n")
	check := exec.Command(Binary(e.t), "config", "check", "--config", filepath.Join(dir, "config.toml"))
	if out, errs, code := Run(e.t, check); code != 0 {
		e.t.Fatalf("config check: exit code %d\n%s%s", code, out, errs)
	}
	cmd := exec.Command(Binary(e.t), "serve")
	cmd.Env = append(os.Environ(), e.Env...)
	g := Launch(e.t, dir, cmd)
	g.Addr, _, _ = strings.Cut(g.WaitListening(), ",")
	return g
}

// ExampleClient is the address of a client that the servers trust no more than the gate.
const ExampleClient = "127.0.0.2"

// Check sends what an operator would try through a gate: a clean message, a listed
// sender, a foreign recipient and an unknown one. It returns the message.
func (e *Example) Check(g *Gate) string {
	e.t.Helper()
	c := MustDialFrom(e.t, g.Addr, ExampleClient).StartTLS(e.t, e.Cert.Roots, GateName)
	message := SmallMessage("a@example.com", "example") + ".\r\n..dots\r\n\xff\r\n"
	if reply := c.MustSend(e.t, "a@example.com", Mailbox, message); !strings.HasPrefix(reply, "250 ") {
		e.t.Errorf("clean mail was answered with %q", reply)
	}
	const refused = "550 5.7.1 <spammer@example.com> refused: list blocked (reported three times); id "
	if reply, err := c.Verdict("spammer@example.com", Mailbox); err != nil || !strings.HasPrefix(reply, refused) {
		e.t.Errorf("a listed sender was answered with %q, %v", reply, err)
	}
	c.Want(e.t, "RSET", "250")
	if reply, err := c.Verdict("a@example.com", "you@example.net"); err != nil || !strings.HasPrefix(reply, "550 5.7.1 <you@example.net> relay access denied") {
		e.t.Errorf("a foreign recipient was answered with %q, %v", reply, err)
	}
	c.Want(e.t, "RSET", "250")
	if reply, err := c.Verdict("a@example.com", "nobody@example.org"); err != nil || !strings.HasPrefix(reply, "55") {
		e.t.Errorf("a recipient that does not exist was answered with %q, %v", reply, err)
	}
	if r := g.WaitRecord("accepted"); !strings.HasPrefix(r.Text("tls"), "TLS") {
		e.t.Errorf("the gate logged %v, want TLS", r)
	}
	return message
}
