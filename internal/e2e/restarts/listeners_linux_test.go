package restarts

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"spamgate/internal/e2e/harness"
)

// listenerTable returns a [[listener]] on a free port.
func listenerTable(name, mode, more string) string {
	return fmt.Sprintf("[[listener]]\nname = %q\naddr = \"127.0.0.1:0\"\ntls = %q\ntls_cert = \"gate.pem\"\ntls_key = \"gate.key\"\n%s\n", name, mode, more)
}

// beginTLS starts TLS, says EHLO again and returns the serial number of the gate's
// certificate.
func beginTLS(t testing.TB, c *harness.Client, greeting bool) (serial int64) {
	t.Helper()
	conn := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true})
	conn.SetDeadline(time.Now().Add(harness.ReplyTimeout))
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	c.Conn, c.Reader = conn, bufio.NewReader(conn)
	if greeting {
		if reply, err := c.Reply(); err != nil || !strings.HasPrefix(reply, "220") {
			t.Fatalf("greeting %q, %v", reply, err)
		}
	}
	c.Want(t, "EHLO client.example", "250")
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// wantListener connects to a listener and checks its mode of TLS, its certificate and
// the verdict on a listed sender.
func wantListener(t testing.TB, addr, mode string, serial int64, verdict string) *harness.Client {
	t.Helper()
	var c *harness.Client
	var got int64
	if mode == "implicit" {
		c = rawDial(t, addr)
		got = beginTLS(t, c, true)
	} else {
		c = harness.MustDial(t, addr)
		offered := strings.Contains(c.Want(t, "EHLO client.example", "250"), "STARTTLS")
		if offered != (mode != "none") {
			t.Fatalf("%s: STARTTLS offered: %v", mode, offered)
		}
		if offered {
			c.Want(t, "STARTTLS", "220")
			got = beginTLS(t, c, false)
		}
	}
	if got != serial {
		t.Errorf("%s: certificate %d, not %d", mode, got, serial)
	}
	if reply, err := c.Verdict("x@spam.example", "b@example.net"); err != nil || !strings.HasPrefix(reply, verdict) {
		t.Errorf("%s: %q, %v", mode, reply, err)
	}
	return c
}

// rawDial connects and reads nothing.
func rawDial(t testing.TB, addr string) *harness.Client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, harness.ReplyTimeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return harness.NewClient(conn)
}

// TestListeners runs several listeners, each with its own TLS, lists and limits, through
// reloads that change all of them, through a reload that fails because of a broken
// certificate, and through a handover.
func TestListeners(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePair := func(cert, key string, serial int64) {
		c, k := harness.NewPEM(t, "gate.example", serial)
		harness.WriteFile(t, filepath.Join(dir, cert), c)
		harness.WriteFile(t, filepath.Join(dir, key), k)
	}
	writePair("gate.pem", "gate.key", 1)
	writePair("other.pem", "other.key", 2)
	harness.WriteFile(t, filepath.Join(dir, "blocked.txt"), "spam.example  # unsolicited mail\n")
	harness.WriteFile(t, filepath.Join(dir, "empty.txt"), "# nobody\n")
	file := filepath.Join(dir, "config.toml")
	s := harness.Setup{Lists: harness.BlockedLists + "[[list]]\nname = \"empty\"\npath = \"empty.txt\"\n"}
	write := func(tables ...string) {
		s.Tables = strings.Join(tables, "")
		harness.WriteFile(t, file, s.Config())
	}
	write(listenerTable("a", "starttls", `lists = ["empty"]`), listenerTable("b", "implicit", "max_connections = 2"))
	g := harness.LaunchSuccession(t, dir, nil, nil, harness.Binary(t), "serve")
	addrs := strings.Split(g.WaitListening(), ",")
	g.Addr = addrs[0]

	n := 0
	check := func(modes [3]string, serials [3]int64, verdicts [3]string) {
		t.Helper()
		for i, addr := range addrs {
			c := wantListener(t, addr, modes[i], serials[i], verdicts[i])
			c.MustSend(t, "a@example.com", "b@example.net", harness.SmallMessage("a@example.com", "m"))
			n++
			c.Want(t, "QUIT", "221")
			c.Close()
		}
	}
	check([3]string{"none", "starttls", "implicit"}, [3]int64{0, 1, 1}, [3]string{"550", "250", "550"})

	// The third client of the listener gets nothing, not even a handshake, although the two
	// others are silent. It is served when one of them is gone. While the gate still counts
	// an earlier client, it may refuse one of the two: that one connects again.
	silent := []*harness.Client{rawDial(t, addrs[2]), rawDial(t, addrs[2])}
	refused := func(c *harness.Client, within time.Duration) bool {
		c.SetReadDeadline(time.Now().Add(within))
		_, err := c.Reader.ReadByte()
		return err != nil && !os.IsTimeout(err)
	}
	harness.WaitFor(t, "the limit of connections", func() bool {
		for i, c := range silent {
			if refused(c, time.Millisecond) {
				silent[i] = rawDial(t, addrs[2])
			}
		}
		c := rawDial(t, addrs[2])
		defer c.Close()
		return refused(c, 100*time.Millisecond)
	})

	off := func(name string) string { return strings.ReplaceAll(listenerTable(name, "none", ""), "tls_", "# tls_") }
	reloads := 0
	reload := func() {
		t.Helper()
		g.Signal(syscall.SIGHUP)
		reloads++
		g.WaitNth(reloads, "reloaded")
	}
	// Changed limits hold for clients that are connected.
	write(listenerTable("a", "starttls", `lists = ["empty"]`), listenerTable("b", "implicit", "max_connections = 10"))
	reload()
	wantListener(t, addrs[2], "implicit", 1, "550").Close()
	for _, c := range silent {
		c.Close()
	}

	// A broken certificate changes nothing on any listener.
	harness.WriteFile(t, filepath.Join(dir, "broken.pem"), "-----BEGIN CERTIFICATE-----\n")
	write(off("a"), strings.ReplaceAll(listenerTable("b", "implicit", ""), "gate.pem", "broken.pem"))
	g.Signal(syscall.SIGHUP)
	if why := g.WaitRecord("reload failed, nothing has changed").Text("error"); !strings.Contains(why, "listener.tls_cert: ") || !strings.Contains(why, "broken.pem") {
		t.Error(why)
	}
	check([3]string{"none", "starttls", "implicit"}, [3]int64{0, 1, 1}, [3]string{"550", "250", "550"})

	// Switch TLS on and off, and change the certificate and the lists.
	s.Keys = map[string]string{"listen": "tls = \"starttls\"\ntls_cert = \"other.pem\"\ntls_key = \"other.key\"\n"}
	write(off("a"), strings.ReplaceAll(listenerTable("b", "implicit", `lists = ["empty"]`), "gate.", "other."))
	reload()
	check([3]string{"starttls", "none", "implicit"}, [3]int64{2, 0, 2}, [3]string{"550", "550", "250"})

	g.HandOver()
	check([3]string{"starttls", "none", "implicit"}, [3]int64{2, 0, 2}, [3]string{"550", "550", "250"})
	g.Stop()
	g.WantEnded(2)
	found, err := filepath.Glob(filepath.Join(dir, "mail", "new", "*"))
	if err != nil || len(found) != n {
		t.Errorf("%d messages in the Maildir, not %d, %v", len(found), n, err)
	}
}
