package milter

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

// gateSetup has a list for each action.
var gateSetup = harness.Setup{
	Tables: `
[headers]
max_bytes = 8192
[policy]
allow_discard = true
exempt_clients = ["192.0.2.9", "2001:db8::9"]
`,
	Lists: `
[[list]]
name = "always"
path = "always.txt"
type = "allow"
override = true
[[list]]
name = "blocked"
path = "blocked.txt"
` + harness.MilderLists,
	Files: map[string]string{
		"always.txt":  "cleared@reject.example\n",
		"blocked.txt": "reject.example  # 100% bulk mail\n",
		"later.txt":   "defer.example\n",
		"dropped.txt": "discard.example\n",
		"marked.txt":  "tag.example  # unsure\n",
	},
}

// startGate starts a gate with nothing but a milter, whose address it returns.
func startGate(t testing.TB, keys string) (*harness.Gate, string) {
	t.Helper()
	addr := harness.FreeAddr(t)
	return serve(t, gateDir(t, addr, keys)), addr
}

// gateDir makes the directory of a gate with a milter.
func gateDir(t testing.TB, addr, keys string) string {
	t.Helper()
	s := gateSetup
	s.Tables += fmt.Sprintf("[[milter]]\nname = \"beside\"\naddr = %q\n%s\n", addr, keys)
	dir := s.Dir(t)
	config := s.Config()
	// The gate has no listener.
	config = strings.Replace(config, `addr = "127.0.0.1:0"`, "addr = []", 1)
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), config)
	return dir
}

// serve starts the gate of a directory, and waits until its milter is open.
func serve(t testing.TB, dir string) *harness.Gate {
	t.Helper()
	g := harness.Launch(t, dir, exec.Command(harness.Binary(t), "serve"))
	g.WaitRecord("door open", "listener", "beside")
	return g
}

// mailServer is a mail server with a milter. It passes all mail on to a Sink.
type mailServer struct {
	addr   string
	sink   *smtptest.Sink
	queued func() bool // reports whether its queue has messages
	log    func() string
}

// startPostfix starts a Postfix with a milter and more lines in main.cf.
func startPostfix(t testing.TB, milter string, lines ...string) mailServer {
	t.Helper()
	sink := smtptest.NewSink(t)
	host, port, _ := net.SplitHostPort(sink.Addr())
	p := harness.StartPostfix(t, harness.Everywhere, append([]string{
		"virtual_mailbox_domains =", fmt.Sprintf("relayhost = [%s]:%s", host, port), "smtpd_milters = inet:" + milter,
		"smtpd_error_sleep_time = 0", "smtpd_soft_error_limit = 1000", "smtpd_hard_error_limit = 1000",
		"smtpd_authorized_xclient_hosts = 127.0.0.0/8", "notify_classes =",
	}, lines...)...)
	queue := filepath.Join(p.Dir, "queue")
	return mailServer{p.Addr, sink, func() bool {
		return !harness.HasNoFiles(queue, "incoming", "active", "deferred", "incoming", "active", "deferred")
	}, func() string { return strings.Join(p.LogLines(), "") }}
}

// startSendmail starts a Sendmail with a milter. The flag is "T" for a milter whose failure
// defers mail, "R" to reject it, and "" to let it pass.
func startSendmail(t testing.TB, milter, flag string, lines ...string) mailServer {
	t.Helper()
	sink := smtptest.NewSink(t)
	host, port, _ := net.SplitHostPort(milter)
	if flag != "" {
		flag = ", F=" + flag
	}
	s := harness.StartSendmail(t, sink.Addr(), append(lines,
		fmt.Sprintf("INPUT_MAIL_FILTER(`spamgate', `S=inet:%s@%s%s, T=C:30s;S:30s;R:30s;E:5m')dnl", port, host, flag))...)
	return mailServer{s.Addr, sink, func() bool { return !harness.HasNoFiles(filepath.Join(s.Root, "var/spool"), "mqueue", "mqueue") },
		func() string { return strings.Join(s.LogLines(), "") }}
}

// settle waits until the mail server has n messages passed on, and no more to do.
func (m mailServer) settle(t testing.TB, n int) []smtptest.Message {
	t.Helper()
	m.sink.WaitMessages(n)
	harness.WaitFor(t, "the queue to be empty", func() bool { return !m.queued() })
	return m.sink.Messages()
}
