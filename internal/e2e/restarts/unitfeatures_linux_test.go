package restarts

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"spamgate/internal/e2e/harness"
	"spamgate/internal/smtptest"
)

const (
	unitConfig = "/etc/spamgate/config.toml"
	unitLog    = "var/log/spamgate/gate.log"
	port25     = "127.0.0.1:25"
)

// configure writes the configuration of a gate that logs to a file.
func (m *machine) configure(nextHop, tables, lists string) {
	m.t.Helper()
	m.write(unitConfig, harness.Setup{
		Listen: "systemd", NextHop: nextHop, Lists: lists, Tables: stateTable + "[policy]\nrecipient_domains = [\"example.net\"]\n" + tables,
		Keys: map[string]string{"next_hop": "allow_public = true", "log": `output = "file:/` + unitLog + `"`},
	}.Config())
}

// prepare does what the installation of a package does.
func (m *machine) prepare() {
	m.t.Helper()
	m.run("systemd-sysusers", "spamgate.conf")
	m.run("systemd-tmpfiles", "--create", "spamgate.conf")
}

// start starts the gate, which has to serve.
func (m *machine) start() {
	m.t.Helper()
	m.run("systemctl", "start", "spamgate.socket", "spamgate.service")
}

// serveTLS serves lists by https on the machine, and writes its certificate to a file.
func (m *machine) serveTLS(authority string) (url string) {
	m.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s.example  # fetched\n", filepath.Base(r.URL.Path))
	}))
	server.Listener.Close() // it is not in the machine's network
	server.Listener = l
	server.StartTLS()
	m.t.Cleanup(server.Close)
	m.write(authority, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	return server.URL
}

// wantRestricted checks that the gate's process has its user and no privileges but those
// capabilities.
func (m *machine) wantRestricted(capabilities string) {
	m.t.Helper()
	pid := m.show("spamgate.service", "MainPID")
	status := m.run("cat", "/proc/"+pid+"/status")
	for _, want := range []string{"CapEff:\t" + capabilities, "CapBnd:\t" + capabilities, "NoNewPrivs:\t1", "Seccomp:\t2", "Uid:\t" + m.run("id", "-u", "spamgate")} {
		if !strings.Contains(status, "\n"+want) {
			m.t.Errorf("the gate's process has not %q:\n%s", want, status)
		}
	}
}

// deliver sends a message, which has to be accepted.
func (m *machine) deliver(subject string) {
	m.t.Helper()
	harness.MustDial(m.t, port25).MustSend(m.t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", subject))
}

// waitLog waits until the log file has n lines with all texts.
func (m *machine) waitLog(n int, texts ...string) {
	m.t.Helper()
	harness.WaitFor(m.t, fmt.Sprintf("%d lines of the log with %q", n, texts), func() bool {
		log, _ := os.ReadFile(m.path(unitLog))
		seen := 0
		for line := range strings.Lines(string(log)) {
			if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
				seen++
			}
		}
		return seen >= n
	})
}

// TestUnitFeatures uses each feature of the gate under the shipped unit.
func TestUnitFeatures(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t, smtptest.Config{LMTP: true, Unix: true})
	m := newMachine(t)
	m.bindSocket(sink.Addr(), "srv/lmtp")
	url := m.serveTLS("etc/spamgate/authority.pem")
	m.write("units/spamgate.service.d/maildir.conf", "[Service]\nReadWritePaths=/srv/mail\n")
	var long strings.Builder // enough for an index on disk
	for i := range 100_000 {
		fmt.Fprintf(&long, "host%d.example\n", i)
	}
	m.write("etc/spamgate/blocked.txt", long.String())
	lists := harness.BlockedLists + fmt.Sprintf("[[list]]\nname = \"ads\"\nurl = \"%s/ads\"\ntls_ca = \"authority.pem\"\n", url)
	m.configure("maildir:/srv/mail", "", lists)
	m.boot()
	m.prepare()
	m.run("install", "-d", "-o", "spamgate", "-m", "700", "/srv/mail")
	m.start()
	m.wantRestricted("0000000000000000")

	m.deliver("first")
	if mail := harness.ReadAll(t, m.path("srv/mail/new")); len(mail) != 1 || !strings.Contains(mail[0], "Subject: first") {
		t.Errorf("delivered: %q", mail)
	}

	// A list that was fetched over TLS, and one that is changed.
	harness.WantRefusal(t, harness.WaitVerdict(t, port25, "x@ads.example", "550"), "x@ads.example", "ads", "fetched")
	m.write("etc/spamgate/blocked.txt", long.String()+"new.example # added\n")
	harness.WantRefusal(t, harness.WaitVerdict(t, port25, "x@new.example", "550"), "x@new.example", "blocked", "added")

	m.waitLog(1, `"msg":"refused"`, "x@new.example")
	if err := os.Rename(m.path(unitLog), m.path(unitLog+".1")); err != nil {
		t.Fatal(err)
	}
	m.run("systemctl", "reload", "spamgate")
	m.waitLog(1, `"msg":"reloaded"`) // in a new file

	// The admin socket, asked by root and by the gate's user.
	for _, args := range [][]string{
		{"spamgate", "lists", "status", "--config", unitConfig},
		{"spamgate", "health", "--config", unitConfig},
		{"setpriv", "--reuid=spamgate", "--regid=spamgate", "--clear-groups", "spamgate", "health", "--config", unitConfig},
	} {
		m.run(args...)
	}
	if status := m.run("spamgate", "lists", "status", "--config", unitConfig); !strings.Contains(status, "100,001") {
		t.Errorf("the running gate's lists:\n%s", status)
	}

	m.configure("lmtp+unix:/srv/lmtp/"+filepath.Base(sink.Addr()), "", lists)
	m.run("systemctl", "reload", "spamgate")
	m.waitLog(2, `"msg":"reloaded"`)
	m.deliver("second")
	if got := sink.Messages(); len(got) != 1 {
		t.Errorf("the LMTP server has %d messages, want 1", len(got))
	}

	for i := range 2 { // as a package does
		before := m.show("spamgate.service", "MainPID")
		r := runHandover(t, m.command("spamgate", "handover", "--config", unitConfig, "--json"), 0)
		if fmt.Sprint(r.Old.PID) != before {
			t.Errorf("main process %s, and %+v", before, r)
		}
		// The gate tells systemd before it answers; systemd reads it when it gets to it.
		harness.WaitFor(t, "systemd to know the new process", func() bool {
			return m.show("spamgate.service", "MainPID") == fmt.Sprint(r.New.PID)
		})
		m.wantRestricted("0000000000000000")
		m.deliver(fmt.Sprint("after handover ", i))
	}
	if got := sink.Messages(); len(got) != 3 {
		t.Errorf("the LMTP server has %d messages, want 3", len(got))
	}
	if state, restarts := m.show("spamgate.service", "ActiveState"), m.show("spamgate.service", "NRestarts"); state != "active" || restarts != "0" {
		t.Errorf("after the handovers the service is %s, with %s restarts", state, restarts)
	}

	// The unit may not ask the kernel for the machine's addresses, one of which this is.
	m.configure("smtp://192.0.2.1:25", "", lists)
	m.run("systemctl", "reload", "spamgate")
	m.waitLog(1, "reload failed", "192.0.2.1:25")

	m.run("systemctl", "stop", "spamgate.socket", "spamgate.service")
	if result := m.show("spamgate.service", "Result"); result != "success" {
		t.Errorf("the service's result is %s", result)
	}
	harness.CheckSink(t, sink)
	if r := runHandover(t, m.command("spamgate", "handover", "--config", unitConfig, "--json"), 1); r.Running {
		t.Errorf("without a gate: %+v", r)
	}
}

// bindSocket makes the directory of a socket appear on the machine.
func (m *machine) bindSocket(socket, place string) {
	m.t.Helper()
	dir := filepath.Dir(socket)
	for path, mode := range map[string]os.FileMode{dir: 0o755, socket: 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			m.t.Fatal(err)
		}
	}
	if err := os.MkdirAll(m.path(place), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := unix.Mount(dir, m.path(place), "", unix.MS_BIND, ""); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { unix.Unmount(m.path(place), unix.MNT_DETACH) })
}

// TestUnitListeners uses listeners.conf: a port below 1024 that the gate opens itself, a
// key that only a group may read, and an admin socket for another group.
func TestUnitListeners(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	dropIn, err := os.ReadFile("../../../packaging/systemd/listeners.conf")
	if err != nil {
		t.Fatal(err)
	}
	m.write("units/spamgate.service.d/listeners.conf", string(dropIn))
	cert, key := harness.NewPEM(t, "mx.example.net", 1)
	m.write("etc/ssl/mx.pem", cert)
	m.write("etc/ssl/private/mx.key", key)
	m.write("etc/spamgate/blocked.txt", "spam.example\n")
	m.configure("maildir:/var/lib/spamgate/mail", `
[admin]
socket = "/run/spamgate/admin.sock"
socket_group = "spamgate-admin"
socket_mode = "0660"
[[listener]]
name = "submissions"
addr = "127.0.0.1:465"
tls = "implicit"
tls_cert = "/etc/ssl/mx.pem"
tls_key = "/etc/ssl/private/mx.key"
`, "")
	m.boot()
	m.prepare()
	m.run("sh", "-ec", `groupadd --force --system ssl-cert; groupadd --system spamgate-admin
		chgrp ssl-cert /etc/ssl/private /etc/ssl/private/mx.key; chmod 710 /etc/ssl/private; chmod 640 /etc/ssl/private/mx.key`)
	m.start()
	m.wantRestricted("0000000000000400") // CAP_NET_BIND_SERVICE

	conn, err := net.Dial("tcp", "127.0.0.1:465")
	if err != nil {
		t.Fatal(err)
	}
	secure := tls.Client(conn, &tls.Config{ServerName: "mx.example.net", InsecureSkipVerify: true}) // it is self-signed
	defer secure.Close()
	greeting := make([]byte, 4)
	if _, err := io.ReadFull(secure, greeting); err != nil || string(greeting) != "220 " {
		t.Errorf("port 465 greets with %q, %v", greeting, err)
	}
	m.deliver("both")
	if got := m.run("stat", "--format=%U:%G %a", "/run/spamgate/admin.sock"); got != "spamgate:spamgate-admin 660" {
		t.Errorf("the admin socket has owner and mode %s", got)
	}
	for group, want := range map[string]bool{"spamgate-admin": true, "nogroup": false} {
		out, err := m.command("setpriv", "--reuid=nobody", "--regid="+group, "--clear-groups", "curl", "--silent", "--show-error",
			"--unix-socket", "/run/spamgate/admin.sock", "http://gate/v1/generation").CombinedOutput()
		if (err == nil) != want {
			t.Errorf("a user of group %s asks the gate: %s, %v", group, out, err)
		}
	}
}

// TestUnitFleetd runs spamgate-fleetd under its shipped unit with the gate's file, beside the gate, which
// neither waits for it nor ends with it. systemd starts it again when it was killed.
func TestUnitFleetd(t *testing.T) {
	t.Parallel()
	sink := smtptest.NewSink(t)
	m := newMachine(t)
	m.configure("smtp://"+sink.Addr(), "[fleet]\nname = \"mx1\"\nservers = \"nats://127.0.0.1:4222\"\n[fleet.server]\nlisten = \"127.0.0.1:4222\"\n",
		"[[list]]\nname = \"shared\"\nmanaged = true\nfleet = true\n")
	m.boot()
	m.prepare()
	const unit = "spamgate-fleetd.service"
	m.run("systemctl", "start", unit)
	m.start()
	m.deliver("the first")
	m.waitLog(1, `"connected to the fleet"`)
	pid := m.show(unit, "MainPID")
	for _, want := range []string{"CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "Uid:\t" + m.run("id", "-u", "spamgate")} {
		if status := m.run("cat", "/proc/"+pid+"/status"); !strings.Contains(status, "\n"+want) {
			t.Errorf("the server's process has not %q:\n%s", want, status)
		}
	}
	harness.WaitFor(t, "systemd knows how the servers are", func() bool { return m.show(unit, "StatusText") == "1 of 1 servers connected, 1 client" })
	m.run("systemctl", "reload", unit)
	m.run("kill", "-9", pid)
	harness.WaitFor(t, "systemd starts it again", func() bool {
		current := m.show(unit, "MainPID")
		return m.show(unit, "ActiveState") == "active" && current != "0" && current != pid
	})
	m.waitLog(2, `"connected to the fleet"`)
	m.deliver("the second")
	m.run("systemctl", "stop", unit)
	if result := m.show(unit, "Result"); result != "success" {
		t.Errorf("the server stopped with %q", result)
	}
	m.deliver("without the server")
}
