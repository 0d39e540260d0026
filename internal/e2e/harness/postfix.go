package harness

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
	"testing"
	"time"
)

// Networks: Everywhere holds every address that a client here has, Nowhere none.
const (
	Everywhere = "127.0.0.0/8"
	Nowhere    = "10.255.255.255/32"
)

// Mailbox is the only mailbox of each server.
const Mailbox = "you@example.org"

// A Postfix is a private Postfix with its own configuration, queue, log and mailboxes in
// a directory, and one port on loopback.
type Postfix struct {
	T      testing.TB
	Dir    string
	Addr   string
	probes int // by Logged
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

// PostfixSmtpd is the line of master.cf for the service that receives mail.
const PostfixSmtpd = "ADDR:PORT inet n - n - - smtpd"

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

// mainCF returns postfixMain with more parameters, "name = value". Each replaces the one
// of that name.
func mainCF(more []string) string {
	lines := strings.Split(strings.TrimSuffix(postfixMain, "\n"), "\n")
	for _, line := range more {
		name, _, _ := strings.Cut(line, " =")
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, name+" =") })
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}

// StartPostfix starts a Postfix that relays for the networks, with more parameters in
// main.cf, and stops it at the end of the test.
func StartPostfix(t testing.TB, mynetworks string, more ...string) *Postfix {
	t.Helper()
	return StartPostfixService(t, PostfixSmtpd, mynetworks, more...)
}

// StartPostfixService is [StartPostfix] with another service in master.cf that receives
// mail at ADDR:PORT.
func StartPostfixService(t testing.TB, smtpd, mynetworks string, more ...string) *Postfix {
	t.Helper()
	program := Program(t, "postfix", "postfix")
	if os.Geteuid() != 0 {
		SkipMissing(t, "Postfix is started by root only")
	}
	owner, err := user.Lookup("postfix")
	if err != nil {
		t.Fatal(err)
	}
	p := &Postfix{T: t, Dir: postfixDir(t, owner), Addr: FreeAddr(t)}
	addr, port, _ := net.SplitHostPort(p.Addr)
	master := strings.Replace(postfixMaster, "SMTPD", smtpd, 1)
	fill := strings.NewReplacer("DIR", p.Dir, "UID", owner.Uid, "GID", owner.Gid, "MYNETWORKS", mynetworks, "ADDR", addr, "PORT", port)
	conf := filepath.Join(p.Dir, "conf")
	WriteFile(t, filepath.Join(conf, "main.cf"), fill.Replace(mainCF(more)))
	WriteFile(t, filepath.Join(conf, "master.cf"), fill.Replace(master))

	out := NewOutput(t, "postfix")
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
		case <-time.After(WorkTimeout):
			t.Error("Postfix did not stop")
			cmd.Process.Kill()
		}
	})
	p.waitReady(ended)
	return p
}

// postfixDir makes the directories that Postfix wants to own. They are not in t.TempDir,
// which only root can enter, because Postfix drops root's rights.
func postfixDir(t testing.TB, owner *user.User) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sgpostfix") // short, since Postfix has sockets in it
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
			continue // root owns it; Postfix makes its subdirectories
		}
		if err := os.Chown(path, uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// waitReady waits until Postfix has answered one connection and logged it.
func (p *Postfix) waitReady(ended <-chan struct{}) {
	p.T.Helper()
	WaitFor(p.T, "Postfix to answer", func() bool {
		select {
		case <-ended:
			p.T.Fatal("Postfix has ended")
		default:
		}
		c, err := Dial(p.Addr, "")
		if err != nil {
			return false
		}
		c.Ask("QUIT")
		c.Close()
		return true
	})
	p.WaitLog(1, "disconnect from")
}

// log returns all that Postfix has logged.
func (p *Postfix) log() string {
	text, err := os.ReadFile(filepath.Join(p.Dir, "mail.log"))
	if err != nil && !os.IsNotExist(err) {
		p.T.Error(err)
	}
	return string(text)
}

// LogLines returns the lines of Postfix's log that hold all texts.
func (p *Postfix) LogLines(texts ...string) []string {
	var found []string
	for line := range strings.Lines(p.log()) {
		if containsAll(line, texts) {
			found = append(found, line)
		}
	}
	return found
}

// containsAll reports whether s contains all texts.
func containsAll(s string, texts []string) bool {
	for _, text := range texts {
		if !strings.Contains(s, text) {
			return false
		}
	}
	return true
}

// WaitLog waits for the n-th line of Postfix's log that holds all texts, and returns it.
func (p *Postfix) WaitLog(n int, texts ...string) string {
	p.T.Helper()
	var line string
	WaitFor(p.T, fmt.Sprintf("line %d with %q in Postfix's log", n, texts), func() bool {
		found := p.LogLines(texts...)
		if len(found) < n {
			return false
		}
		line = found[n-1]
		return true
	})
	return line
}

// Logged waits until the log holds all that Postfix has said so far. Postfix writes its
// log in order, so Logged makes a connection and waits until the log has its end.
func (p *Postfix) Logged() {
	p.T.Helper()
	const prober = "127.0.0.99"
	c, err := Dial(p.Addr, prober)
	if err != nil {
		p.T.Fatal(err)
	}
	c.Ask("QUIT")
	c.Close()
	p.probes++
	p.WaitLog(p.probes, "disconnect from", "["+prober+"]")
}

// MailOf waits for n messages in the mailbox of a user and returns all that are there,
// with lines that end in LF.
func (p *Postfix) MailOf(user string, n int) []string {
	p.T.Helper()
	var messages []string
	WaitFor(p.T, fmt.Sprintf("%d messages for %s", n, user), func() bool {
		messages = ReadAll(p.T, filepath.Join(p.Dir, "mail", user, "new"))
		return len(messages) >= n
	})
	return messages
}

// OneMail waits for a message in the mailbox of a user, which has to be the only one.
func (p *Postfix) OneMail(user string) string {
	p.T.Helper()
	messages := p.MailOf(user, 1)
	if len(messages) != 1 {
		p.T.Fatalf("%d messages for %s", len(messages), user)
	}
	return messages[0]
}

// SettledPostfix waits until Postfix has nothing left to do, and returns the messages
// that it has delivered.
func SettledPostfix(t testing.TB, p *Postfix) []string {
	t.Helper()
	p.Logged()
	// A message that leaves the queue may bring a report into it: look twice.
	WaitFor(t, "Postfix's sessions and deliveries to end", func() bool {
		return len(p.LogLines(" connect from")) == len(p.LogLines("disconnect from")) &&
			HasNoFiles(filepath.Join(p.Dir, "queue"), "incoming", "active", "deferred", "incoming", "active", "deferred")
	})
	return ReadAll(t, filepath.Join(p.Dir, "mail/you/new"))
}
