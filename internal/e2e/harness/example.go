package harness

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/defaultconfig"
)

// An Example is a configuration as "config init" writes it for an operator, with an
// address and a certificate of the test. The shipped lists are beside it.
type Example struct {
	t    testing.TB
	Text string      // the configuration
	Cert Certificate // the gate's
	Env  []string    // the gate's environment, besides the test's
	Do   []string    // what to do with the lines for each file

	server string // as in --for
	listen string
	blocks []string
}

// GateName is the gate's host name in the examples.
const GateName = "mx.example.org"

// OpenExample has "config init" write a configuration for a server, with more flags.
func OpenExample(t testing.TB, server string, flags ...string) *Example {
	t.Helper()
	e := &Example{t: t, server: server, listen: "127.0.0.1:0", Cert: NewCertificate(t, GateName)}
	e.init(append([]string{"--domain", "example.org", "--tls-cert", e.Cert.Cert, "--tls-key", e.Cert.Key}, flags...))
	return e
}

// OpenDoorExample is [OpenExample] for a server that asks the gate. The gate has a door at a
// free address.
func OpenDoorExample(t testing.TB, server string, flags ...string) *Example {
	t.Helper()
	e := &Example{t: t, server: server, listen: FreeAddr(t)}
	e.init(flags)
	return e
}

// init has "config init" write the configuration.
func (e *Example) init(flags []string) {
	e.t.Helper()
	t := e.t
	args := []string{"config", "init", "--json", "--for", e.server, "--hostname", GateName, "--listen", e.listen, "--state-dir", "state"}
	out, errs, code := Run(t, exec.Command(Binary(t), append(args, flags...)...))
	var written struct {
		Config string
		Server []struct{ Do, Text string }
	}
	if err := json.Unmarshal([]byte(out), &written); err != nil || code != 0 {
		t.Fatalf("config init: exit code %d, %v\n%s", code, err, errs)
	}
	e.Text = written.Config
	for _, block := range written.Server {
		e.blocks = append(e.blocks, block.Text)
		e.Do = append(e.Do, block.Do)
	}
}

// Replace replaces the only occurrence of a text in the configuration.
func (e *Example) Replace(old, with string) {
	e.t.Helper()
	if n := strings.Count(e.Text, old); n != 1 {
		e.t.Fatalf("%q is there %d times", old, n)
	}
	e.Text = strings.Replace(e.Text, old, with, 1)
}

// Lines returns the lines that "config init" prints for a file of the server, with
// their comments. 0 is the first file.
func (e *Example) Lines(file int) string {
	e.t.Helper()
	if file >= len(e.blocks) {
		e.t.Fatalf("there are lines for %d files", len(e.blocks))
	}
	return strings.TrimSuffix(e.blocks[file], "\n")
}

// CheckServer wants "config init --check" to find all lines in the configuration of a
// server, which it reads from a file, a directory or, with "-", standard input. The next hop
// is "" for a server that asks.
func (e *Example) CheckServer(nextHop, config, stdin string) {
	e.t.Helper()
	args := []string{"config", "init", "--for", e.server, "--check", "--listen", e.listen, "--server-config", config}
	if nextHop != "" {
		args = append(args, "--next-hop", nextHop)
	}
	cmd := exec.Command(Binary(e.t), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, errs, code := Run(e.t, cmd)
	if code != 0 {
		e.t.Errorf("config init --check: exit code %d\n%s%s", code, out, errs)
	}
}

// ReplaceIn returns lines with the only occurrence of a text replaced.
func (e *Example) ReplaceIn(lines, old, with string) string {
	e.t.Helper()
	if strings.Count(lines, old) != 1 {
		e.t.Fatalf("%q is not there once in:\n%s", old, lines)
	}
	return strings.Replace(lines, old, with, 1)
}

// Start checks the configuration with "config check" and starts a gate with it, which has a
// listener.
func (e *Example) Start() *Gate {
	e.t.Helper()
	g := e.launch()
	g.Addr, _, _ = strings.Cut(g.WaitListening(), ",")
	return g
}

// StartDoor is [Example.Start] for a gate without a listener. Its Addr is that of its door.
func (e *Example) StartDoor() *Gate {
	e.t.Helper()
	g := e.launch()
	g.Addr = g.WaitRecord("door open").Text("addr")
	return g
}

func (e *Example) launch() *Gate {
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
	return Launch(e.t, dir, cmd)
}

// ExampleClient is the address of a client that the servers trust no more than the gate.
const ExampleClient = "127.0.0.2"

// Check sends what an operator would try through a gate: a clean message, a listed
// sender, a foreign recipient and an unknown one. It returns the message.
func (e *Example) Check(g *Gate) string {
	e.t.Helper()
	c := MustDialFrom(e.t, g.Addr, ExampleClient).StartTLS(e.t, e.Cert.Roots, GateName)
	message := SmallMessage("a@example.com", "example") + ".\r\n..dots\r\n\xff\r\n"
	if reply := c.MustSend(e.t, "a@example.com", Mailbox, message); !strings.HasPrefix(reply, "250") {
		e.t.Errorf("clean mail was answered with %q", reply)
	}
	const refused = "550 5.7.1 <spammer@example.com> refused: list blocked-file (reported three times); id "
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
