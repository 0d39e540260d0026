package harness

import (
	_ "embed"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

//go:embed sendmail.mc
var sendmailMC string

// StartSendmail starts a Sendmail that passes all mail on to a server at "127.0.0.1:4711",
// with more lines in sendmail.mc. It runs its queue every second.
func StartSendmail(t testing.TB, nextHop string, lines ...string) *ChrootServer {
	t.Helper()
	return StartSendmailWithAccess(t, nextHop, "", lines...)
}

// StartSendmailWithAccess starts a Sendmail with an access database, /etc/mail/access, of that source.
func StartSendmailWithAccess(t testing.TB, nextHop, access string, lines ...string) *ChrootServer {
	t.Helper()
	s := newChrootServer(t, "sendmail")
	host, port, _ := net.SplitHostPort(s.Addr)
	nextHost, nextPort, _ := net.SplitHostPort(nextHop)
	s.Write("etc/mail/sendmail.mc", strings.NewReplacer("NEXTHOST", nextHost, "NEXTPORT", nextPort,
		"ADDR", host, "PORT", port, "LINES", strings.Join(lines, "\n")).Replace(sendmailMC))
	s.Write("etc/mail/local-host-names", "")
	s.Write("etc/service.switch", "hosts files\naliases files\n")
	s.directory("var/spool/mqueue", 0)
	s.directory("var/run", 0)
	s.Write("etc/mail/sendmail.cf", s.Run("/usr/bin/m4", "/etc/mail/sendmail.mc"))
	if access != "" {
		s.Write("etc/mail/access", access)
		s.Run("/bin/sh", "-c", "/usr/sbin/makemap hash /etc/mail/access </etc/mail/access")
	}
	s.syslog()
	s.start("/usr/libexec/sendmail/sendmail", "-bD", "-q1s")
	return s
}

// syslog adds what the server sends to syslog to its log.
func (s *ChrootServer) syslog() {
	s.t.Helper()
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(s.Root, "dev/log"), Net: "unixgram"})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { l.Close() })
	go func() {
		line := make([]byte, 64<<10)
		for {
			n, err := l.Read(line)
			if err != nil {
				return
			}
			s.out.Write(append(line[:n:n], '\n'))
		}
	}()
}
