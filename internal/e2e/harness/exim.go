package harness

import (
	"cmp"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// EximOptions are the differences between the Exims of the tests.
type EximOptions struct {
	ProxyFrom string // hosts whose connections begin with a PROXY header
	RelayFor  string // hosts that may send mail to any domain
	SmartHost string // "host:port" for mail to other domains
	Listen    string // replaces EximListen
	Rcpt      string // first lines of the ACL for RCPT
	Banner    string // greeting; "" is Exim's own
	TLSFor    string // networks that are offered STARTTLS, with a certificate that Exim makes
	Resolver  string // IP address of the DNS server; "" for none
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
tls_advertise_hosts = STARTTLS
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

// EximListen are the lines that say where Exim listens, and whom it takes a PROXY header
// from.
const EximListen = `local_interfaces = ADDR
daemon_smtp_ports = PORT
hosts_proxy = PROXY
message_size_limit = 100M`

const eximSmartHost = `smarthost:
  driver = manualroute
  route_list = * HOST::PORT
  self = send
  transport = smarthost
`

// StartExim starts an Exim with the mailbox you@example.org. It tolerates clients that
// send before they are asked, because refusing them would hide what it makes of their
// bytes.
func StartExim(t testing.TB, o EximOptions) *ChrootServer {
	t.Helper()
	s := newChrootServer(t, "exim")
	smartHost := ""
	if host, port, err := net.SplitHostPort(o.SmartHost); err == nil {
		smartHost = strings.NewReplacer("HOST", host, "PORT", port).Replace(eximSmartHost)
	}
	addr, port, _ := net.SplitHostPort(s.Addr)
	banner := ""
	if o.Banner != "" {
		banner = "smtp_banner = " + o.Banner
	}
	conf := strings.NewReplacer("LISTEN", cmp.Or(o.Listen, EximListen), "ACCEPT", o.Rcpt, "BANNER", banner).Replace(eximConf)
	fill := strings.NewReplacer("ADDR", addr, "PORT", port, "PROXY", o.ProxyFrom, "STARTTLS", o.TLSFor, "RELAY", "<; "+o.RelayFor, "SMARTHOST", smartHost)
	s.Write("etc/exim4/exim4.conf", fill.Replace(conf))
	const exim = 61001
	s.directory("var/spool/exim4", exim)
	s.directory("var/log", exim)
	s.Write("etc/services", "smtp 25/tcp\n")
	if o.Resolver != "" {
		s.Write("etc/resolv.conf", "nameserver "+o.Resolver+"\n")
	}
	answers := func() bool { return Greets(s.Addr) }
	if o.ProxyFrom != "" || o.Listen != "" {
		answers = func() bool { return listens("tcp", s.Addr) } // Exim does not greet before a PROXY header
	}
	s.startWhen(answers, "/usr/sbin/exim4", "-bdf", "-q1h")
	return s
}

// EximExpand returns what Exim expands texts to, a line each. The files are in /tmp there.
func EximExpand(t testing.TB, files map[string]string, texts []string) []string {
	t.Helper()
	s := newChrootServer(t, "exim")
	s.Write("etc/exim4/exim4.conf", "primary_hostname = mx.example.org\nkeep_environment =\n")
	for name, content := range files {
		s.Write("tmp/"+name, content)
	}
	cmd := exec.Command("/usr/sbin/exim4", "-be")
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Chroot: s.Root}
	cmd.Stdin = strings.NewReader(strings.Join(texts, "\n") + "\n")
	stdout, stderr, code := Run(t, cmd)
	lines := strings.Split(strings.ReplaceAll(stdout, "> ", ""), "\n")
	if code != 0 || len(lines) < len(texts) {
		t.Fatalf("exim -be: exit code %d, %d lines for %d: %s%.1000s", code, len(lines), len(texts), stderr, stdout)
	}
	return lines[:len(texts)]
}
