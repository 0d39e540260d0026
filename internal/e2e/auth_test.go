package e2e

import (
	"encoding/base64"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"spamgate/internal/smtptest"
)

// dovecotAuth has Dovecot check passwords for a mail server, without the waits that
// follow wrong ones.
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

// TestAuthPostfix has a Postfix ask Dovecot for passwords.
func TestAuthPostfix(t *testing.T) {
	t.Parallel()
	e := openExample(t, "postfix.toml")
	d := startDovecot(t, dovecotAuth, "smtp")
	sink := smtptest.NewSink(t)
	host, port, _ := net.SplitHostPort(sink.Addr())
	// Out of its chroot it would need Dovecot's socket in the queue's directory.
	master := e.in(e.in(e.lines("master.cf"), "127.0.0.1:10025 ", "ADDR:PORT "), " n - y ", " n - n ") +
		"\n" + e.lines("master.cf, mail programs")
	p := startPostfixService(t, master, nowhere,
		"smtpd_sasl_type = dovecot", "smtpd_sasl_path = "+d.socket, "relayhost = ["+host+"]:"+port)
	e.replace(`addr = "smtp://127.0.0.1:10025"`, fmt.Sprintf("addr = %q", "smtp://"+p.addr))
	checkAuth(t, e, sink, func() *client { return mustDial(t, p.addr) })
	for _, mechanism := range []string{"PLAIN", "LOGIN"} {
		line := p.waitLog(1, "client=", "sasl_method="+mechanism, "sasl_username="+mailbox)
		if !strings.Contains(line, "[127.0.0.1]") {
			t.Errorf("Postfix logged %q, want the client", line)
		}
	}
}

func TestAuthExim(t *testing.T) {
	t.Parallel()
	e := openExample(t, "exim.toml")
	sink := smtptest.NewSink(t)
	s := startExim(t, eximOptions{
		listen:    e.in(e.lines("exim.conf"), "127.0.0.1.10025", "ADDR.PORT"),
		rcpt:      e.lines("exim.conf, acl"),
		smartHost: sink.Addr(),
	})
	e.replace(`addr = "smtp://127.0.0.1:10025"`, fmt.Sprintf("addr = %q", "smtp://"+s.addr))
	checkAuth(t, e, sink, func() *client {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "PROXY TCP4 127.0.0.1 127.0.0.1 4711 25\r\n")
		c, err := greet(conn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	})
	for _, mechanism := range []string{"plain", "login"} {
		s.waitLog(1, " <= spammer@example.com", "A="+mechanism+":"+mailbox)
	}
}

// loginProgram is a mail program: it logs in, and sends from a listed sender to
// a foreign recipient.
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

// checkAuth has mail programs log in through a gate with the listeners that an
// example shows. Direct connects to the server itself.
func checkAuth(t *testing.T, e *example, sink *smtptest.Sink, direct func() *client) {
	t.Helper()
	python := tool(t, "python3", "python3")
	listeners := e.in(e.lines("listeners"), `":465"`, `"127.0.0.1:0"`)
	e.text += "\n" + e.in(listeners, `":587"`, `"127.0.0.1:0"`) + "\n"
	g := e.start()
	addrs := strings.Split(g.waitRecord("listening").string("addr"), ",")
	if len(addrs) != 3 {
		t.Fatalf("the gate listens on %q, want three ports", addrs)
	}
	submissions, submission := addrs[1], addrs[2]
	pollFor(t, "AUTH to be offered", func() bool { // see waitOffered
		c := mustDial(t, submission).startTLS(t, e.cert.roots, gateName)
		defer c.Close()
		return strings.Contains(c.want(t, "EHLO client.example", "250"), "AUTH ")
	})

	login := func(addr string, implicit bool, mechanism, password string) (string, int) {
		host, port, _ := net.SplitHostPort(addr)
		out, errs, code := run(t, exec.Command(python, "-c", loginProgram, host, port, e.cert.cert, fmt.Sprint(implicit), mechanism, password))
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
		g.waitRecord("accepted", "exempt", "authenticated", "from", "<spammer@example.com>")
	}
	checkRefusedLogin(t, e, submission, direct)
	checkNoAuth(t, e, g.addr, submission)
}

// plainLogin is the command that logs in with PLAIN.
func plainLogin(password string) string {
	return "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00"+mailbox+"\x00"+password))
}

// checkRefusedLogin wants a wrong password to be answered in the server's words,
// after which the client may try another.
func checkRefusedLogin(t *testing.T, e *example, submission string, direct func() *client) {
	t.Helper()
	want := direct().want(t, plainLogin("wrong"), "535")
	c := mustDial(t, submission).startTLS(t, e.cert.roots, gateName)
	if got := c.want(t, plainLogin("wrong"), "535"); got != want {
		t.Errorf("a wrong password was answered with %q, by the server itself with %q", got, want)
	}
	c.want(t, plainLogin("secret"), "235")
	c.want(t, plainLogin("secret"), "503")
	c.want(t, "MAIL FROM:<spammer@example.com>", "250")
	c.want(t, "RCPT TO:<friend@example.net>", "250")
}

// checkNoAuth wants AUTH to be offered inside TLS only, and only at the port that
// has it; and who has not logged in has no privilege.
func checkNoAuth(t *testing.T, e *example, public, submission string) {
	t.Helper()
	plain := mustDial(t, submission)
	if reply := plain.want(t, "EHLO client.example", "250"); strings.Contains(reply, "AUTH") {
		t.Errorf("AUTH is offered without TLS: %q", reply)
	}
	if reply, err := plain.ask(plainLogin("secret")); err != nil || reply[0] != '5' {
		t.Errorf("AUTH without TLS was answered with %q, %v", reply, err)
	}
	plain.want(t, "MAIL FROM:<a@example.com>", "530")

	other := mustDial(t, public).startTLS(t, e.cert.roots, gateName)
	if reply := other.want(t, "EHLO client.example", "250"); strings.Contains(reply, "AUTH") {
		t.Errorf("AUTH is offered at port 25: %q", reply)
	}
	other.want(t, plainLogin("secret"), "502")

	stranger := mustDial(t, submission).startTLS(t, e.cert.roots, gateName)
	if reply := stranger.want(t, "EHLO client.example", "250"); !strings.Contains(reply, "AUTH ") {
		t.Errorf("AUTH is not offered: %q", reply)
	}
	for _, from := range []string{"a@example.com", "spammer@example.com"} {
		if reply, err := stranger.verdict(from, "friend@example.net"); err != nil || !strings.HasPrefix(reply, "550 5.7.1") {
			t.Errorf("<%s>, who has not logged in, was answered with %q, %v", from, reply, err)
		}
		stranger.want(t, "RSET", "250")
	}
}
