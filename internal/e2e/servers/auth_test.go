package servers

import (
	"encoding/base64"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// dovecotAuth has Dovecot check passwords for a mail server, without delays after wrong
// ones.
const dovecotAuth = `auth_mechanisms = plain login
disable_plaintext_auth = no
auth_failure_delay = 0
service anvil {
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
service auth {
  unix_listener smtp {
    mode = 0666
  }
}`

// TestAuthPostfix has a Postfix that asks Dovecot about passwords.
func TestAuthPostfix(t *testing.T) {
	t.Parallel()
	e := harness.OpenExample(t, "postfix", "--submission")
	d := harness.StartDovecot(t, dovecotAuth, "smtp")
	sink := smtptest.NewSink(t)
	host, port, _ := net.SplitHostPort(sink.Addr())
	// In its chroot it would need Dovecot's socket in the queue directory.
	master := e.ReplaceIn(e.ReplaceIn(e.Lines(0), "127.0.0.1:10025 ", "ADDR:PORT "), " n - y ", " n - n ")
	p := harness.StartPostfixService(t, master, harness.Nowhere,
		"smtpd_sasl_type = dovecot", "smtpd_sasl_path = "+d.Socket, "relayhost = ["+host+"]:"+port)
	e.Replace(`addr = "smtp://127.0.0.1:10025"`, fmt.Sprintf("addr = %q", "smtp://"+p.Addr))
	checkAuth(t, e, sink, func() *harness.Client { return harness.MustDial(t, p.Addr) })
	for _, mechanism := range []string{"PLAIN", "LOGIN"} {
		line := p.WaitLog(1, "client=", "sasl_method="+mechanism, "sasl_username="+harness.Mailbox)
		if !strings.Contains(line, "[127.0.0.1]") {
			t.Errorf("Postfix logged %q, want the client", line)
		}
	}
}

// TestAuthExim has an Exim that knows the passwords itself.
func TestAuthExim(t *testing.T) {
	t.Parallel()
	e := harness.OpenExample(t, "exim", "--submission")
	sink := smtptest.NewSink(t)
	s := harness.StartExim(t, harness.EximOptions{
		Listen:    e.ReplaceIn(e.Lines(0), "127.0.0.1.10025", "ADDR.PORT"),
		Rcpt:      e.Lines(1),
		SmartHost: sink.Addr(),
	})
	e.Replace(`addr = "smtp://127.0.0.1:10025"`, fmt.Sprintf("addr = %q", "smtp://"+s.Addr))
	checkAuth(t, e, sink, func() *harness.Client {
		conn, err := net.Dial("tcp", s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "PROXY TCP4 127.0.0.1 127.0.0.1 4711 25\r\n")
		c, err := harness.Greet(conn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	})
	for _, mechanism := range []string{"plain", "login"} {
		s.WaitLog(1, " <= spammer@example.com", "A="+mechanism+":"+harness.Mailbox)
	}
}

// loginProgram is a mail program that logs in and sends from a listed sender to a
// foreign recipient.
const loginProgram = `
import smtplib, ssl, sys
host, port, ca, implicit, mechanism, password = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.check_hostname = False # it is that of the address here
if implicit == "true":
    s = smtplib.SMTP_SSL(host, int(port), "client.example", context=context)
else:
    s = smtplib.SMTP(host, int(port), "client.example")
    s.starttls(context=context)
s.ehlo()
s.user, s.password = "you@example.org", password
s.auth(mechanism, getattr(s, "auth_" + mechanism.lower()))
s.sendmail("spammer@example.com", ["friend@example.net"], "Subject: " + mechanism + " " + implicit + "\r\n\r\nHello.\r\n")
s.quit()
`

// checkAuth has mail programs log in through a gate with the listeners that an example
// shows. Direct connects to the server without a gate.
func checkAuth(t *testing.T, e *harness.Example, sink *smtptest.Sink, direct func() *harness.Client) {
	t.Helper()
	python := harness.Program(t, "python3", "python3")
	e.Replace(`":465"`, `"127.0.0.1:0"`)
	e.Replace(`":587"`, `"127.0.0.1:0"`)
	g := e.Start()
	addrs := strings.Split(g.WaitRecord("listening").Text("addr"), ",")
	if len(addrs) != 3 {
		t.Fatalf("the gate listens on %q, want three ports", addrs)
	}
	submissions, submission := addrs[1], addrs[2]
	harness.WaitFor(t, "AUTH to be offered", func() bool { // as WaitOffered, but within TLS
		c := harness.MustDial(t, submission).StartTLS(t, e.Cert.Roots, harness.GateName)
		defer c.Close()
		return strings.Contains(c.Want(t, "EHLO client.example", "250"), "AUTH ")
	})

	login := func(addr string, implicit bool, mechanism, password string) (string, int) {
		host, port, _ := net.SplitHostPort(addr)
		out, errs, code := harness.Run(t, exec.Command(python, "-c", loginProgram, host, port, e.Cert.Cert, fmt.Sprint(implicit), mechanism, password))
		return out + errs, code
	}
	for addr, implicit := range map[string]bool{submissions: true, submission: false} {
		for _, mechanism := range []string{"PLAIN", "LOGIN"} {
			if out, code := login(addr, implicit, mechanism, "secret"); code != 0 {
				t.Errorf("%s, implicit TLS %t: exit code %d\n%s", mechanism, implicit, code, out)
			}
			if out, code := login(addr, implicit, mechanism, "wrong"); code == 0 || !strings.Contains(out, "SMTPAuthenticationError: (535") {
				t.Errorf("%s with a wrong password: exit code %d\n%s", mechanism, code, out)
			}
		}
	}
	sink.WaitMessages(4)
	for _, m := range sink.Messages() {
		if !strings.HasPrefix(m.Mail, "MAIL FROM:<spammer@example.com>") {
			t.Errorf("the server behind was told %q", m.Mail)
		}
	}
	for range 4 {
		g.WaitRecord("accepted", "exempt", "authenticated", "from", "<spammer@example.com>")
	}
	checkRefusedLogin(t, e, submission, direct)
	checkNoAuth(t, e, g, submission)
	checkGuesses(t, e, submission)
}

// plainLogin returns the command that logs in with PLAIN.
func plainLogin(password string) string {
	return "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00"+harness.Mailbox+"\x00"+password))
}

// checkRefusedLogin checks that the client gets the server's own reply to a wrong
// password, and may try again.
func checkRefusedLogin(t *testing.T, e *harness.Example, submission string, direct func() *harness.Client) {
	t.Helper()
	want := direct().Want(t, plainLogin("wrong"), "535")
	c := harness.MustDial(t, submission).StartTLS(t, e.Cert.Roots, harness.GateName)
	if got := c.Want(t, plainLogin("wrong"), "535"); got != want {
		t.Errorf("a wrong password was answered with %q, by the server itself with %q", got, want)
	}
	c.Want(t, plainLogin("secret"), "235")
	c.Want(t, plainLogin("secret"), "503")
	c.Want(t, "MAIL FROM:<spammer@example.com>", "250")
	c.Want(t, "RCPT TO:<friend@example.net>", "250")
}

// checkNoAuth checks that AUTH is offered only within TLS and only on the listener that
// has it, and that a client without a login can send nothing there, not even to a recipient
// of ours.
func checkNoAuth(t *testing.T, e *harness.Example, g *harness.Gate, submission string) {
	t.Helper()
	plain := harness.MustDial(t, submission)
	if reply := plain.Want(t, "EHLO client.example", "250"); strings.Contains(reply, "AUTH") {
		t.Errorf("AUTH is offered without TLS: %q", reply)
	}
	if reply, err := plain.Ask(plainLogin("secret")); err != nil || reply[0] != '5' {
		t.Errorf("AUTH without TLS was answered with %q, %v", reply, err)
	}
	plain.Want(t, "MAIL FROM:<a@example.com>", "530")

	other := harness.MustDial(t, g.Addr).StartTLS(t, e.Cert.Roots, harness.GateName)
	if reply := other.Want(t, "EHLO client.example", "250"); strings.Contains(reply, "AUTH") {
		t.Errorf("AUTH is offered at port 25: %q", reply)
	}
	other.Want(t, plainLogin("secret"), "502")

	stranger := harness.MustDial(t, submission).StartTLS(t, e.Cert.Roots, harness.GateName)
	if reply := stranger.Want(t, "EHLO client.example", "250"); !strings.Contains(reply, "AUTH ") {
		t.Errorf("AUTH is not offered: %q", reply)
	}
	accepted := len(g.Records("accepted"))
	for _, from := range []string{"a@example.com", "spammer@example.com", ""} {
		for _, to := range []string{harness.Mailbox, "postmaster@example.org", "friend@example.net"} {
			stranger.Want(t, "MAIL FROM:<"+from+">", "530 5.7.0 Authentication required")
			stranger.Want(t, "RCPT TO:<"+to+">", "530 5.7.0")
			stranger.Want(t, "DATA", "530 5.7.0")
			stranger.Want(t, "RSET", "250")
		}
	}
	if n := len(g.Records("accepted")); n != accepted {
		t.Errorf("%d messages of a stranger were accepted", n-accepted)
	}
}

// checkGuesses tries wrong passwords, each over a connection of its own, as a client that has
// made no error yet. It is answered until it has made as many errors as the configuration
// allows, and is turned away then.
func checkGuesses(t *testing.T, e *harness.Example, submission string) {
	t.Helper()
	began := time.Now()
	for answered := 0; ; answered++ {
		if most := 20 + int(time.Since(began)/(3*time.Second)); answered > most {
			t.Fatalf("%d wrong passwords were answered, want at most %d", answered, most)
		}
		conn, err := harness.Dial(submission, "127.0.0.3")
		if err != nil && strings.Contains(err.Error(), "421 4.7.0 Too many errors from your address") {
			if answered < 20 {
				t.Errorf("%d wrong passwords were answered, want 20", answered)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		c := conn.StartTLS(t, e.Cert.Roots, harness.GateName)
		c.Want(t, plainLogin("wrong"), "535")
		c.Close()
	}
}
