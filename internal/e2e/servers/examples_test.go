package servers

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// wantClient checks that a line of a server's log names the client.
func wantClient(t testing.TB, line string) {
	t.Helper()
	if !strings.Contains(line, harness.ExampleClient) {
		t.Errorf("the server logged %q, want the client %s", line, harness.ExampleClient)
	}
}

func TestExamplePostfix(t *testing.T) {
	t.Parallel()
	e := harness.OpenExample(t, "postfix")
	p := harness.StartPostfixService(t, e.ReplaceIn(e.Lines(0), "127.0.0.1:10025 ", "ADDR:PORT "), harness.Everywhere)
	e.Replace(`addr = "smtp://127.0.0.1:10025"`, fmt.Sprintf("addr = %q", "smtp://"+p.Addr))
	e.CheckServer("smtp://"+p.Addr, filepath.Join(p.Dir, "conf"), "")
	message := e.Check(e.Start())
	wantClient(t, p.WaitLog(1, ": client="))
	if mail := p.OneMail("you"); !strings.HasSuffix(mail, strings.ReplaceAll(message, "\r\n", "\n")) {
		t.Errorf("the mail arrived changed:\n%q", mail)
	}
}

func TestExampleExim(t *testing.T) {
	t.Parallel()
	e := harness.OpenExample(t, "exim")
	s := harness.StartExim(t, harness.EximOptions{Listen: e.ReplaceIn(e.Lines(0), "127.0.0.1.10025", "ADDR.PORT")})
	e.Replace(`addr = "smtp://127.0.0.1:10025"`, fmt.Sprintf("addr = %q", "smtp://"+s.Addr))
	e.CheckServer("smtp://"+s.Addr, "-", s.Run("/usr/sbin/exim4", "-bP")+s.Run("/usr/sbin/exim4", "-bV"))
	message := e.Check(e.Start())
	wantClient(t, s.WaitLog(1, " <= a@example.com"))
	wantMessage(t, s, "you", message)
}

func TestExampleOpenSMTPD(t *testing.T) {
	t.Parallel()
	e := harness.OpenExample(t, "opensmtpd")
	s := harness.StartOpenSMTPDListen(t, e.ReplaceIn(e.Lines(0), "127.0.0.1 port 10025", "ADDR port PORT"))
	e.Replace(`addr = "smtp://127.0.0.1:10025"`, fmt.Sprintf("addr = %q", "smtp://"+s.Addr))
	e.CheckServer("smtp://"+s.Addr, filepath.Join(s.Root, "etc/smtpd.conf"), "")
	message := e.Check(e.Start())
	wantClient(t, s.WaitLog(1, "smtp connected address=127.0.0.2"))
	wantMessage(t, s, "you", message)
}

func TestExampleDovecot(t *testing.T) {
	t.Parallel()
	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		e := harness.OpenExample(t, "lmtp")
		d := harness.StartDovecot(t, e.Lines(0), "lmtp")
		e.Replace(`addr = "lmtp+unix:/run/dovecot/lmtp"`, fmt.Sprintf("addr = %q", "lmtp+unix:"+d.Socket))
		e.CheckServer("lmtp+unix:/run/dovecot/lmtp", "-", d.Run("/usr/bin/doveconf"))
		wantMessage(t, d.ChrootServer, "you", e.Check(e.Start()))
	})
	t.Run("TCP", func(t *testing.T) {
		t.Parallel()
		e := harness.OpenExample(t, "lmtp", "--next-hop", "lmtp://127.0.0.1:24")
		service := e.ReplaceIn(e.Lines(0), "address = 127.0.0.1", "address = ADDR")
		d := harness.StartDovecot(t, e.ReplaceIn(service, "port = 24", "port = PORT"), "")
		e.Replace(`addr = "lmtp://127.0.0.1:24"`, fmt.Sprintf("addr = %q", "lmtp://"+d.Addr))
		e.CheckServer("lmtp://"+d.Addr, "-", d.Run("/usr/bin/doveconf", "-n"))
		wantMessage(t, d.ChrootServer, "you", e.Check(e.Start()))
	})
}

// TestExampleRemote has the gate verify the certificate of the remote server in each way
// that the example shows.
func TestExampleRemote(t *testing.T) {
	t.Parallel()
	const remote = "mx.example.net"
	cert := harness.NewCertificate(t, remote)
	e := harness.OpenExample(t, "remote", "--next-hop", "smtp://mx.example.net:25")
	lines := e.ReplaceIn(e.Lines(0), "/etc/ssl/private/mx.example.net.pem", cert.Both)
	p := harness.StartPostfix(t, harness.Nowhere, append(strings.Split(lines, "\n"), "smtpd_tls_loglevel = 1")...)
	e.CheckServer("smtp://mx.example.net:25", filepath.Join(p.Dir, "conf"), "")
	open := func(t testing.TB) *harness.Example {
		e := harness.OpenExample(t, "remote", "--next-hop", "smtp://mx.example.net:25")
		e.Replace(`addr = "smtp://mx.example.net:25"`, fmt.Sprintf("addr = %q", "smtp://"+p.Addr))
		return e
	}
	t.Run("system's authorities", func(t *testing.T) {
		e := open(t)
		e.Env = []string{"SSL_CERT_FILE=" + cert.Cert}
		message := e.Check(e.Start())
		if mail := p.OneMail("you"); !strings.HasSuffix(mail, strings.ReplaceAll(message, "\r\n", "\n")) {
			t.Errorf("the mail arrived changed:\n%q", mail)
		}
		p.WaitLog(1, "Anonymous TLS connection established from")
	})
	t.Run("own authority", func(t *testing.T) {
		e := open(t)
		e.Replace("tls_name =", fmt.Sprintf("tls_ca = %q\ntls_name =", cert.Cert))
		e.Check(e.Start())
	})
	t.Run("pin", func(t *testing.T) {
		e := open(t)
		e.Replace("tls_name =", fmt.Sprintf("tls_pins = [%q]\ntls_name =", cert.Pin))
		e.Check(e.Start())
	})
	for name, change := range map[string]func(*harness.Example){
		"unknown authority": func(*harness.Example) {},
		"wrong name": func(e *harness.Example) {
			e.Env = []string{"SSL_CERT_FILE=" + cert.Cert}
			e.Replace(`tls_name = "mx.example.net"`, `tls_name = "mx.example.com"`)
		},
		"wrong pin": func(e *harness.Example) {
			e.Replace("tls_name =", fmt.Sprintf("tls_pins = [%q]\ntls_name =", strings.Repeat("0", 64)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t)
			change(e)
			c := harness.MustDial(t, e.Start().Addr).StartTLS(t, e.Cert.Roots, harness.GateName)
			c.Want(t, "MAIL FROM:<a@example.com>", "250")
			c.Want(t, "RCPT TO:<"+harness.Mailbox+">", "451")
		})
	}
	p.Logged()
	if lines := p.LogLines(": client="); len(lines) != 3 {
		t.Errorf("Postfix has taken %d messages, want 3: %q", len(lines), lines)
	}
}
