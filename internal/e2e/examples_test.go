package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/shipped"
)

// example is a configuration of docs/examples as an operator copies it: with
// addresses and certificates of its own, the lists beside it, and nothing else
// changed.
type example struct {
	t     testing.TB
	shown string      // as it ships
	text  string      // as it is used
	cert  certificate // of the gate
	env   []string    // of the gate
}

// gateName is what the examples call the gate.
const gateName = "mx.example.org"

// openExample reads an example and gives it an address and a certificate.
func openExample(t testing.TB, name string) *example {
	t.Helper()
	shown, err := os.ReadFile("../../docs/examples/" + name)
	if err != nil {
		t.Fatal(err)
	}
	e := &example{t: t, shown: string(shown), text: string(shown), cert: newCertificate(t, gateName)}
	e.replace(`addr = ":25"`, `addr = "127.0.0.1:0"`)
	e.replace(`dir = "/var/lib/spamgate"`, `dir = "state"`)
	e.replace(`"/etc/ssl/mx.example.org.pem"`, fmt.Sprintf("%q", e.cert.cert))
	e.replace(`"/etc/ssl/private/mx.example.org.key"`, fmt.Sprintf("%q", e.cert.key))
	return e
}

// replace replaces what is there once.
func (e *example) replace(old, with string) {
	e.t.Helper()
	if n := strings.Count(e.text, old); n != 1 {
		e.t.Fatalf("%q is there %d times", old, n)
	}
	e.text = strings.Replace(e.text, old, with, 1)
}

// lines are those that the example shows in its comments, between
//
//	# >>> name
//	# <<<
func (e *example) lines(name string) string {
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

// in are lines with one text in them replaced.
func (e *example) in(lines, old, with string) string {
	e.t.Helper()
	if strings.Count(lines, old) != 1 {
		e.t.Fatalf("%q is not there once in:\n%s", old, lines)
	}
	return strings.Replace(lines, old, with, 1)
}

// start runs the gate, once its configuration is found good.
func (e *example) start() *gate {
	e.t.Helper()
	dir := e.t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "lists"), shipped.Lists()); err != nil {
		e.t.Fatal(err)
	}
	// The log is read by the test, and is the one thing that it adds.
	writeFile(e.t, filepath.Join(dir, "config.toml"), e.text+"\n[log]\nformat = \"json\"\n")
	check := exec.Command(binary(e.t), "config", "check", "--config", filepath.Join(dir, "config.toml"))
	if out, errs, code := run(e.t, check); code != 0 {
		e.t.Fatalf("config check: exit code %d\n%s%s", code, out, errs)
	}
	cmd := exec.Command(binary(e.t), "serve")
	cmd.Env = append(os.Environ(), e.env...)
	g := launch(e.t, dir, cmd)
	g.addr, _, _ = strings.Cut(g.waitListening(), ",")
	return g
}

// exampleClient is an address of a client that no server here trusts more than
// the gate's own.
const exampleClient = "127.0.0.2"

// check sends through a gate what an operator would try: a clean message, a listed
// sender, a foreign recipient. It returns the message.
func (e *example) check(g *gate) string {
	e.t.Helper()
	c := mustDialFrom(e.t, g.addr, exampleClient).startTLS(e.t, e.cert.roots, gateName)
	message := letter("a@example.com", "example") + ".\r\n..dots\r\n\xff\r\n"
	if reply := c.mustSend(e.t, "a@example.com", mailbox, message); !strings.HasPrefix(reply, "250 ") {
		e.t.Errorf("clean mail was answered with %q", reply)
	}
	const refused = "550 5.7.1 <spammer@example.com> refused: list blocked (reported three times); id "
	if reply, err := c.verdict("spammer@example.com", mailbox); err != nil || !strings.HasPrefix(reply, refused) {
		e.t.Errorf("a listed sender was answered with %q, %v", reply, err)
	}
	c.want(e.t, "RSET", "250")
	if reply, err := c.verdict("a@example.com", "you@example.net"); err != nil || !strings.HasPrefix(reply, "550 5.7.1 <you@example.net> relay access denied") {
		e.t.Errorf("a foreign recipient was answered with %q, %v", reply, err)
	}
	c.want(e.t, "RSET", "250")
	if reply, err := c.verdict("a@example.com", "nobody@example.org"); err != nil || !strings.HasPrefix(reply, "55") {
		e.t.Errorf("a recipient that does not exist was answered with %q, %v", reply, err)
	}
	if r := g.waitRecord("accepted"); !strings.HasPrefix(r.string("tls"), "TLS") {
		e.t.Errorf("the gate logged %v, want TLS", r)
	}
	return message
}

// wantClient wants a line of a server's log to name the client.
func wantClient(t testing.TB, line string) {
	t.Helper()
	if !strings.Contains(line, exampleClient) {
		t.Errorf("the server logged %q, want the client %s", line, exampleClient)
	}
}

func TestExamplePostfix(t *testing.T) {
	t.Parallel()
	e := openExample(t, "postfix.toml")
	p := startPostfixService(t, e.in(e.lines("master.cf"), "127.0.0.1:10025 ", "ADDR:PORT "), everywhere)
	e.replace(`addr = "smtp://127.0.0.1:10025"`, fmt.Sprintf("addr = %q", "smtp://"+p.addr))
	message := e.check(e.start())
	wantClient(t, p.waitLog(1, ": client="))
	if mail := p.mail(); !strings.HasSuffix(mail, strings.ReplaceAll(message, "\r\n", "\n")) {
		t.Errorf("the mail arrived changed:\n%q", mail)
	}
}

func TestExampleExim(t *testing.T) {
	t.Parallel()
	e := openExample(t, "exim.toml")
	lines := e.in(e.lines("exim.conf"), "127.0.0.1.10025", "ADDR.PORT") + "\n" + e.lines("exim.conf, connections")
	s := startExim(t, eximOptions{listen: lines})
	e.replace(`addr = "smtp://127.0.0.1:10025"`, fmt.Sprintf("addr = %q", "smtp://"+s.addr))
	message := e.check(e.start())
	wantClient(t, s.waitLog(1, " <= a@example.com"))
	wantMessage(t, s, "you", message)
}

func TestExampleOpenSMTPD(t *testing.T) {
	t.Parallel()
	e := openExample(t, "opensmtpd.toml")
	s := startOpenSMTPDListen(t, e.in(e.lines("smtpd.conf"), "127.0.0.1 port 10025", "ADDR port PORT"))
	e.replace(`addr = "smtp://127.0.0.1:10025"`, fmt.Sprintf("addr = %q", "smtp://"+s.addr))
	message := e.check(e.start())
	wantClient(t, s.waitLog(1, "smtp connected address=127.0.0.2"))
	wantMessage(t, s, "you", message)
}

func TestExampleDovecot(t *testing.T) {
	t.Parallel()
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		e := openExample(t, "dovecot-lmtp.toml")
		d := startDovecot(t, e.lines("dovecot.conf"), "lmtp")
		e.replace(`addr = "lmtp+unix:/run/dovecot/lmtp"`, fmt.Sprintf("addr = %q", "lmtp+unix:"+d.socket))
		wantMessage(t, d.tree, "you", e.check(e.start()))
	})
	t.Run("TCP", func(t *testing.T) {
		t.Parallel()
		e := openExample(t, "dovecot-lmtp.toml")
		service := e.in(e.lines("dovecot.conf, TCP"), "address = 127.0.0.1", "address = ADDR")
		d := startDovecot(t, e.in(service, "port = 24", "port = PORT"), "")
		e.replace(`addr = "lmtp+unix:/run/dovecot/lmtp"`, e.in(e.lines("addr, TCP"), "127.0.0.1:24", d.addr))
		wantMessage(t, d.tree, "you", e.check(e.start()))
	})
}

// TestExampleRemote has the certificate of the remote server verified in each of
// the ways that the example shows.
func TestExampleRemote(t *testing.T) {
	t.Parallel()
	const remote = "mx.example.net"
	cert := newCertificate(t, remote)
	e := openExample(t, "remote.toml")
	lines := e.in(e.lines("main.cf"), "/etc/ssl/private/mx.example.net.pem", cert.both)
	p := startPostfix(t, nowhere, append(strings.Split(lines, "\n"), "smtpd_tls_loglevel = 1")...)
	open := func(t testing.TB) *example {
		e := openExample(t, "remote.toml")
		e.replace(`addr = "smtp://mx.example.net:25"`, fmt.Sprintf("addr = %q", "smtp://"+p.addr))
		return e
	}
	t.Run("system's authorities", func(t *testing.T) {
		e := open(t)
		e.env = []string{"SSL_CERT_FILE=" + cert.cert}
		message := e.check(e.start())
		if mail := p.mail(); !strings.HasSuffix(mail, strings.ReplaceAll(message, "\r\n", "\n")) {
			t.Errorf("the mail arrived changed:\n%q", mail)
		}
		p.waitLog(1, "Anonymous TLS connection established from")
	})
	t.Run("own authority", func(t *testing.T) {
		e := open(t)
		e.replace("tls_name =", e.in(e.lines("CA"), "/etc/ssl/example-ca.pem", cert.cert)+"\ntls_name =")
		e.check(e.start())
	})
	t.Run("pin", func(t *testing.T) {
		e := open(t)
		e.replace("tls_name =", e.in(e.lines("pin"), strings.Repeat("0", 64), cert.pin)+"\ntls_name =")
		e.check(e.start())
	})
	for name, change := range map[string]func(*example){
		"unknown authority": func(*example) {},
		"wrong name": func(e *example) {
			e.env = []string{"SSL_CERT_FILE=" + cert.cert}
			e.replace(`tls_name = "mx.example.net"`, `tls_name = "mx.example.com"`)
		},
		"wrong pin": func(e *example) { e.replace("tls_name =", e.lines("pin")+"\ntls_name =") },
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t)
			change(e)
			c := mustDial(t, e.start().addr).startTLS(t, e.cert.roots, gateName)
			c.want(t, "MAIL FROM:<a@example.com>", "250")
			c.want(t, "RCPT TO:<"+mailbox+">", "451")
		})
	}
	p.logged()
	if lines := p.logLines(": client="); len(lines) != 3 {
		t.Errorf("Postfix has taken %d messages, want 3: %q", len(lines), lines)
	}
}
