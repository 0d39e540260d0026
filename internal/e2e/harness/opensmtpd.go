package harness

import (
	"net"
	"strings"
	"testing"
)

const openSMTPDConf = `smtp limit max-mails 100000
smtp limit max-rcpt 100000
LISTEN
table users { you = "61006:61006:/var/mail" }
table recipients { "you@example.org" }
action "in" maildir "/var/mail/you" userbase <users>
match from any for rcpt-to <recipients> action "in"
`

// OpenSMTPDListen are the lines that say where OpenSMTPD listens.
const OpenSMTPDListen = `listen on ADDR port PORT hostname mx.example.org
smtp max-message-size 100M`

// StartOpenSMTPD starts an OpenSMTPD with the mailbox you@example.org.
func StartOpenSMTPD(t testing.TB) *ChrootServer {
	t.Helper()
	return StartOpenSMTPDListen(t, OpenSMTPDListen)
}

// StartOpenSMTPDListen is [StartOpenSMTPD] with other lines in place of OpenSMTPDListen.
func StartOpenSMTPDListen(t testing.TB, listen string) *ChrootServer {
	t.Helper()
	s := newChrootServer(t, "opensmtpd")
	addr, port, _ := net.SplitHostPort(s.Addr)
	fill := strings.NewReplacer("LISTEN", strings.NewReplacer("ADDR", addr, "PORT", port).Replace(listen))
	s.Write("etc/smtpd.conf", fill.Replace(openSMTPDConf))
	s.directory("var/lib/opensmtpd/empty", 0)
	answers := func() bool { return Greets(s.Addr) }
	if strings.Contains(listen, "proxy-v2") {
		answers = func() bool { return listens("tcp", s.Addr) }
	}
	s.startWhen(answers, "/usr/sbin/smtpd", "-d")
	return s
}
