package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The mailbox that Postfix has; it knows no other.
const mailbox = "you@example.org"

// postfix is a private Postfix: its own configuration, queue, log and mailboxes
// in a directory, and one port on loopback.
type postfix struct {
	t      testing.TB
	dir    string
	addr   string
	probes int // see logged
}

const postfixMain = `compatibility_level = 3.6
queue_directory = DIR/queue
data_directory = DIR/data
maillog_file = DIR/mail.log
maillog_file_prefixes = DIR
myhostname = mx.example.org
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
enable_long_queue_ids = yes
smtpd_peername_lookup = no
mydestination =
alias_maps =
alias_database =
local_recipient_maps =
virtual_mailbox_domains = example.org
virtual_mailbox_maps = inline:{ you@example.org=you/ }
virtual_mailbox_base = DIR/mail
virtual_uid_maps = static:UID
virtual_gid_maps = static:GID
virtual_minimum_uid = 1
mynetworks = MYNETWORKS
smtpd_relay_restrictions = permit_mynetworks, reject_unauth_destination
smtpd_authorized_xforward_hosts = 127.0.0.0/8
header_checks = regexp:{ {/^Subject:/ INFO} }
`

// postfixSmtpd is the service that takes mail, in master.cf.
const postfixSmtpd = "ADDR:PORT inet n - n - - smtpd"

const postfixMaster = `SMTPD
cleanup  unix n - n - 0 cleanup
qmgr     unix n - n 300 1 qmgr
rewrite  unix - - n - - trivial-rewrite
bounce   unix - - n - 0 bounce
defer    unix - - n - 0 bounce
trace    unix - - n - 0 bounce
proxymap unix - - n - - proxymap
error    unix - - n - - error
retry    unix - - n - - error
discard  unix - - n - - discard
tlsmgr   unix - - n 1000? 1 tlsmgr
smtp     unix - - n - - smtp
virtual  unix - n n - - virtual
anvil    unix - - n - 1 anvil
postlog  unix-dgram n - n - 1 postlogd
`

// mainCF is postfixMain with further parameters, "name = value", each in place of
// one of that name.
func mainCF(more []string) string {
	lines := strings.Split(strings.TrimSuffix(postfixMain, "\n"), "\n")
	for _, line := range more {
		name, _, _ := strings.Cut(line, " =")
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, name+" =") })
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}

// startPostfix starts a Postfix that trusts the networks to relay, with further
// parameters in its main.cf. It ends with the test.
func startPostfix(t testing.TB, mynetworks string, more ...string) *postfix {
	t.Helper()
	return startPostfixService(t, postfixSmtpd, mynetworks, more...)
}

// startPostfixService is startPostfix with another service in master.cf that takes
// mail at ADDR:PORT.
func startPostfixService(t testing.TB, smtpd, mynetworks string, more ...string) *postfix {
	t.Helper()
	program := tool(t, "postfix", "postfix")
	if os.Geteuid() != 0 {
		missing(t, "Postfix is started by root only")
	}
	owner, err := user.Lookup("postfix")
	if err != nil {
		t.Fatal(err)
	}
	p := &postfix{t: t, dir: postfixDir(t, owner), addr: freeAddr(t)}
	addr, port, _ := net.SplitHostPort(p.addr)
	master := strings.Replace(postfixMaster, "SMTPD", smtpd, 1)
	fill := strings.NewReplacer("DIR", p.dir, "UID", owner.Uid, "GID", owner.Gid, "MYNETWORKS", mynetworks, "ADDR", addr, "PORT", port)
	conf := filepath.Join(p.dir, "conf")
	writeFile(t, filepath.Join(conf, "main.cf"), fill.Replace(mainCF(more)))
	writeFile(t, filepath.Join(conf, "master.cf"), fill.Replace(master))

	out := newLines(t, "postfix")
	cmd := exec.Command(program, "-c", conf, "start-fg")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last lines of Postfix's log:\n%s", tail(p.log()))
		}
		if out, err := exec.Command(program, "-c", conf, "stop").CombinedOutput(); err != nil {
			t.Logf("stopping Postfix: %v\n%s", err, out)
		}
		select {
		case <-ended:
		case <-time.After(lateLimit):
			t.Error("Postfix did not stop")
			cmd.Process.Kill()
		}
	})
	p.waitReady(ended)
	return p
}

// postfixDir makes the directories that Postfix wants to own. It drops root's
// rights, so they must not be below t.TempDir, which only root can enter.
func postfixDir(t testing.TB, owner *user.User) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sgpostfix") // short: Postfix has sockets in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(owner.Uid)
	for _, name := range []string{"queue", "data", "mail"} {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if name == "queue" {
			continue // its subdirectories are Postfix's, it is root's
		}
		if err := os.Chown(path, uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ports counts those that freeAddr has tried. They are below the ports that the
// system gives to whoever asks for any.
var ports atomic.Int32

const firstPort, lastPort = 10_001, 30_000

// freeAddr is an address for a server that opens it later, or that is to be found
// closed: nobody else takes it meanwhile. The address of loopback is this process's
// own, and the port is given to nobody who listens on all addresses, on any port.
func freeAddr(t testing.TB) string {
	t.Helper()
	pid := os.Getpid()
	host := fmt.Sprintf("127.%d.%d.%d", 64+pid>>16&63, pid>>8&255, pid&255)
	for {
		port := firstPort - 1 + int(ports.Add(1))
		addr := net.JoinHostPort(host, strconv.Itoa(port))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			l.Close()
			return addr
		}
		if port >= lastPort {
			t.Fatal(err)
		}
	}
}

// waitReady waits until Postfix says 220, and has logged that: one connection.
func (p *postfix) waitReady(ended <-chan struct{}) {
	p.t.Helper()
	p.poll("Postfix to answer", func() bool {
		select {
		case <-ended:
			p.t.Fatal("Postfix has ended")
		default:
		}
		c, err := dial(p.addr, "")
		if err != nil {
			return false
		}
		c.ask("QUIT")
		c.Close()
		return true
	})
	p.waitLog(1, "disconnect from")
}

// poll asks until done, for what is told by no event.
func (p *postfix) poll(what string, done func() bool) {
	p.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(lateLimit); !done(); {
		select {
		case <-tick.C:
		case <-late:
			p.t.Fatalf("waited %v for %s", lateLimit, what)
		}
	}
}

func (p *postfix) log() string {
	text, err := os.ReadFile(filepath.Join(p.dir, "mail.log"))
	if err != nil && !os.IsNotExist(err) {
		p.t.Error(err)
	}
	return string(text)
}

// logLines are the lines of Postfix's log that hold all texts.
func (p *postfix) logLines(texts ...string) []string {
	var found []string
	for line := range strings.Lines(p.log()) {
		if containsAll(line, texts) {
			found = append(found, line)
		}
	}
	return found
}

func containsAll(s string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(s, text) {
			return false
		}
	}
	return true
}

// waitLog waits for the n-th line of Postfix's log that holds all texts.
func (p *postfix) waitLog(n int, texts ...string) string {
	p.t.Helper()
	var line string
	p.poll(fmt.Sprintf("line %d with %q in Postfix's log", n, texts), func() bool {
		found := p.logLines(texts...)
		if len(found) < n {
			return false
		}
		line = found[n-1]
		return true
	})
	return line
}

// logged waits until all is in the log that Postfix has said so far: its postlogd
// writes the lines in the order in which they are said, but not before a reply.
func (p *postfix) logged() {
	p.t.Helper()
	const prober = "127.0.0.99"
	c, err := dial(p.addr, prober)
	if err != nil {
		p.t.Fatal(err)
	}
	c.ask("QUIT")
	c.Close()
	p.probes++
	p.waitLog(p.probes, "disconnect from", "["+prober+"]")
}

// mail waits for one message in the mailbox, whose lines end in LF there.
func (p *postfix) mail() string {
	p.t.Helper()
	var files []string
	p.poll("mail", func() bool {
		files, _ = filepath.Glob(filepath.Join(p.dir, "mail", "you", "new", "*"))
		return len(files) > 0
	})
	if len(files) != 1 {
		p.t.Fatalf("%d messages in the mailbox", len(files))
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}
