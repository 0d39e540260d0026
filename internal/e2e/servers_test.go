package e2e

import (
	"bufio"
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// connect connects to a server and says nothing.
func connect(addr string) (*client, error) {
	conn, err := net.DialTimeout("tcp", addr, waitLimit)
	if err != nil {
		return nil, err
	}
	return &client{conn, bufio.NewReader(conn)}, nil
}

// eximOptions are what the Exims of the tests differ in.
type eximOptions struct {
	proxyFrom string // the hosts whose connections begin with a PROXY header
	relayFor  string // the hosts that may send mail to anywhere
	smartHost string // "host:port" that mail for elsewhere goes to
	listen    string // in place of the lines that say where it listens and to whom
	rcpt      string // what comes first in its ACL for RCPT
	banner    string // what it greets with; "" is Exim's own
}

const eximConf = `primary_hostname = mx.example.org
LISTEN
notifier_socket =
spool_directory = /var/spool/exim4
log_file_path = /var/log/%s
log_selector = +smtp_protocol_error +smtp_syntax_error +received_sender
keep_environment =
host_lookup =
rfc1413_query_timeout = 0s
tls_advertise_hosts =
smtp_enforce_sync = false
BANNER
acl_smtp_rcpt = rcpt
begin acl
rcpt:
  ACCEPT
  accept hosts = RELAY
  accept domains = example.org
         local_parts = you
  deny message = relay not permitted
begin routers
you:
  driver = accept
  domains = example.org
  transport = maildir
SMARTHOST
begin transports
maildir:
  driver = appendfile
  directory = /var/mail/you
  maildir_format
  user = vmail
  group = vmail
smarthost:
  driver = smtp
  allow_localhost
  port = 25
  helo_data = client.example
  hosts_try_fastopen =
  hosts_require_tls =
begin retry
* * F,1h,1s
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${if and{{eq{$auth2}{you@example.org}}{eq{$auth3}{secret}}}}
  server_set_id = $auth2
login:
  driver = plaintext
  public_name = LOGIN
  server_prompts = <| Username: | Password:
  server_condition = ${if and{{eq{$auth1}{you@example.org}}{eq{$auth2}{secret}}}}
  server_set_id = $auth1
`

// eximListen says where Exim listens and to whom.
const eximListen = `local_interfaces = ADDR
daemon_smtp_ports = PORT
hosts_proxy = PROXY
message_size_limit = 100M`

const eximSmartHost = `smarthost:
  driver = manualroute
  route_list = * HOST::PORT
  self = send
  transport = smarthost
`

// startExim starts an Exim that has the mailbox. It does not mind clients that
// talk too soon, which hides some of what it makes of their bytes.
func startExim(t testing.TB, o eximOptions) *tree {
	t.Helper()
	s := newTree(t, "exim")
	smartHost := ""
	if host, port, err := net.SplitHostPort(o.smartHost); err == nil {
		smartHost = strings.NewReplacer("HOST", host, "PORT", port).Replace(eximSmartHost)
	}
	addr, port, _ := net.SplitHostPort(s.addr)
	banner := ""
	if o.banner != "" {
		banner = "smtp_banner = " + o.banner
	}
	conf := strings.NewReplacer("LISTEN", cmp.Or(o.listen, eximListen), "ACCEPT", o.rcpt, "BANNER", banner).Replace(eximConf)
	fill := strings.NewReplacer("ADDR", addr, "PORT", port, "PROXY", o.proxyFrom, "RELAY", "<; "+o.relayFor, "SMARTHOST", smartHost)
	s.write("etc/exim4/exim4.conf", fill.Replace(conf))
	const exim = 61001
	s.directory("var/spool/exim4", exim)
	s.directory("var/log", exim)
	s.write("etc/services", "smtp 25/tcp\n")
	answers := func() bool { return greets(s.addr) }
	if o.proxyFrom != "" || o.listen != "" {
		answers = func() bool { return listens("tcp", s.addr) } // it says nothing before a PROXY header
	}
	s.startWhen(answers, "/usr/sbin/exim4", "-bdf", "-q1h")
	return s
}

const openSMTPDConf = `smtp limit max-mails 100000
smtp limit max-rcpt 100000
LISTEN
table users { you = "61006:61006:/var/mail" }
table recipients { "you@example.org" }
action "in" maildir "/var/mail/you" userbase <users>
match from any for rcpt-to <recipients> action "in"
`

// openSMTPDListen says where OpenSMTPD listens.
const openSMTPDListen = `listen on ADDR port PORT hostname mx.example.org
smtp max-message-size 100M`

// startOpenSMTPD starts an OpenSMTPD that has the mailbox.
func startOpenSMTPD(t testing.TB) *tree {
	t.Helper()
	return startOpenSMTPDListen(t, openSMTPDListen)
}

// startOpenSMTPDListen is startOpenSMTPD with other lines that say where it
// listens.
func startOpenSMTPDListen(t testing.TB, listen string) *tree {
	t.Helper()
	s := newTree(t, "opensmtpd")
	addr, port, _ := net.SplitHostPort(s.addr)
	fill := strings.NewReplacer("LISTEN", strings.NewReplacer("ADDR", addr, "PORT", port).Replace(listen))
	s.write("etc/smtpd.conf", fill.Replace(openSMTPDConf))
	s.directory("var/lib/opensmtpd/empty", 0)
	answers := func() bool { return greets(s.addr) }
	if strings.Contains(listen, "proxy-v2") {
		answers = func() bool { return listens("tcp", s.addr) }
	}
	s.startWhen(answers, "/usr/sbin/smtpd", "-d")
	return s
}

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

// dovecotLMTP has Dovecot take mail by TCP and by a socket.
const dovecotLMTP = `protocols = lmtp
service lmtp {
  unix_listener lmtp {
    mode = 0666
  }
  inet_listener lmtp {
    address = ADDR
    port = PORT
  }
}`

// dovecot is a Dovecot with LMTP on a TCP port and on a socket.
type dovecot struct {
	*tree
	socket string // path
}

// startDovecotLMTP starts a Dovecot that has the users you and me at
// example.org.
func startDovecotLMTP(t testing.TB) dovecot {
	t.Helper()
	return startDovecot(t, dovecotLMTP, "lmtp")
}

// startDovecot starts a Dovecot with services that have a socket, which is a path
// in /run/dovecot, or with LMTP on a TCP port, where that is "".
func startDovecot(t testing.TB, service, socket string) dovecot {
	t.Helper()
	s := newTree(t, "dovecot")
	addr, port, _ := net.SplitHostPort(s.addr)
	fill := strings.NewReplacer("ADDR", addr, "PORT", port)
	s.write("etc/dovecot/dovecot.conf", fill.Replace(strings.Replace(dovecotConf, "SERVICE", service, 1)))
	var users strings.Builder
	for _, user := range []string{"you", "me"} {
		fmt.Fprintf(&users, "%s@example.org:{plain}secret:%d:%d::/var/mail/%s\n", user, vmail, vmail, user)
	}
	s.write("etc/dovecot/users", users.String())
	s.directory("run", 0)
	s.directory("var/lib/dovecot", 0)
	if socket == "" {
		s.start("/usr/sbin/dovecot", "-F")
		return dovecot{s, ""}
	}
	path := filepath.Join(s.root, "run/dovecot", socket)
	s.startWhen(func() bool { return listens("unix", path) }, "/usr/sbin/dovecot", "-F")
	return dovecot{s, path}
}

// TestServers delivers a message to each server that is not installed, through a
// gate.
func TestServers(t *testing.T) {
	t.Parallel()
	message := letter("a@example.com", "servers") + ".\r\n..dots\r\n\xff\r\n"
	for _, s := range []struct {
		name  string
		start func(t testing.TB) *tree
	}{
		{"Exim", func(t testing.TB) *tree { return startExim(t, eximOptions{}) }},
		{"OpenSMTPD", startOpenSMTPD},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			server := s.start(t)
			g := startGate(t, setup{nextHop: "smtp://" + server.addr})
			reply := mustDial(t, g.addr).mustSend(t, "a@example.com", mailbox, message)
			if !strings.HasPrefix(reply, "250 ") {
				t.Errorf("the message was answered with %q", reply)
			}
			wantMessage(t, server, "you", message)
		})
	}
}

// wantMessage wants one message for a user, which ends in what was sent.
func wantMessage(t testing.TB, s *tree, user, message string) {
	t.Helper()
	got := s.mail(user, 1)
	if len(got) != 1 || !strings.HasSuffix(got[0], strings.ReplaceAll(message, "\r\n", "\n")) {
		t.Errorf("%s: the mail for %s arrived changed:\n%q", s.name, user, got)
	}
}

// TestDovecotLMTP says what Dovecot does on its own: it answers for each
// recipient apart.
func TestDovecotLMTP(t *testing.T) {
	t.Parallel()
	d := startDovecotLMTP(t)
	message := letter("a@example.com", "lmtp")
	for _, network := range []string{"tcp", "unix"} {
		addr, user := d.addr, "you"
		if network == "unix" {
			addr, user = d.socket, "me"
		}
		conn, err := net.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := &client{conn, bufio.NewReader(conn)}
		if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "220") {
			t.Fatalf("greeting %q, %v", reply, err)
		}
		t.Log(c.want(t, "LHLO client.example", "250"))
		c.want(t, "MAIL FROM:<a@example.com>", "250")
		c.want(t, "RCPT TO:<"+user+"@example.org>", "250")
		c.want(t, "RCPT TO:<nobody@example.org>", "550")
		c.want(t, "DATA", "354")
		c.Write(stuff([]byte(message)))
		if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "250") {
			t.Errorf("the message was answered with %q, %v", reply, err)
		}
		wantMessage(t, d.tree, user, message)
	}
}
