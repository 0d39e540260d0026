package harness

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

const dovecotConf = `protocols =
listen = ADDR
base_dir = /run/dovecot
state_dir = /var/lib/dovecot
log_path = /var/log/main
ssl = no
hostname = mx.example.org
postmaster_address = postmaster@example.org
mail_location = maildir:~
first_valid_uid = 1
passdb {
  driver = passwd-file
  args = /etc/dovecot/users
}
userdb {
  driver = passwd-file
  args = /etc/dovecot/users
}
SERVICE
`

// DovecotLMTP are the lines of a configuration with LMTP on a TCP port and on a socket.
const DovecotLMTP = `protocols = lmtp
service lmtp {
  unix_listener lmtp {
    mode = 0666
  }
  inet_listener lmtp {
    address = ADDR
    port = PORT
  }
}`

// A Dovecot has the users you and me at example.org.
type Dovecot struct {
	*ChrootServer
	Socket string // file, or "" for TCP only
}

// StartDovecot starts a Dovecot with a service. Socket is the name in /run/dovecot of
// the service's socket, or "" if the service is LMTP on a TCP port.
func StartDovecot(t testing.TB, service, socket string) Dovecot {
	t.Helper()
	s := newChrootServer(t, "dovecot")
	addr, port, _ := net.SplitHostPort(s.Addr)
	fill := strings.NewReplacer("ADDR", addr, "PORT", port)
	s.Write("etc/dovecot/dovecot.conf", fill.Replace(strings.Replace(dovecotConf, "SERVICE", service, 1)))
	var users strings.Builder
	for _, user := range []string{"you", "me"} {
		fmt.Fprintf(&users, "%s@example.org:{plain}secret:%d:%d::/var/mail/%s\n", user, VmailUID, VmailUID, user)
	}
	s.Write("etc/dovecot/users", users.String())
	s.directory("run", 0)
	s.directory("var/lib/dovecot", 0)
	if socket == "" {
		s.start("/usr/sbin/dovecot", "-F")
		return Dovecot{s, ""}
	}
	path := filepath.Join(s.Root, "run/dovecot", socket)
	s.startWhen(func() bool { return listens("unix", path) }, "/usr/sbin/dovecot", "-F")
	return Dovecot{s, path}
}
