package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pemFiles are a certificate that signs itself, for gate.example, and its key.
func pemFiles(t testing.TB, serial int64) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(0, 1, 0),
		DNSNames:     []string{"gate.example"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", keyDER)
}

// listenerTable is a [[listener]] on any free port.
func listenerTable(name, mode, more string) string {
	return fmt.Sprintf("[[listener]]\nname = %q\naddr = \"127.0.0.1:0\"\ntls = %q\ntls_cert = \"gate.pem\"\ntls_key = \"gate.key\"\n%s\n", name, mode, more)
}

// beginTLS begins TLS and greets again. The serial number is that of the gate's
// certificate.
func (c *client) beginTLS(t testing.TB, greeting bool) (serial int64) {
	t.Helper()
	conn := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true})
	conn.SetDeadline(time.Now().Add(waitLimit))
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	c.Conn, c.in = conn, bufio.NewReader(conn)
	if greeting {
		if reply, err := c.reply(); err != nil || !strings.HasPrefix(reply, "220") {
			t.Fatalf("greeting %q, %v", reply, err)
		}
	}
	c.want(t, "EHLO client.example", "250")
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// wantListener connects to a listener with the mode of TLS that it should have,
// wants that certificate, and a verdict on a listed sender.
func wantListener(t testing.TB, addr, mode string, serial int64, verdict string) *client {
	t.Helper()
	var c *client
	var got int64
	if mode == "implicit" {
		c = rawDial(t, addr)
		got = c.beginTLS(t, true)
	} else {
		c = mustDial(t, addr)
		offered := strings.Contains(c.want(t, "EHLO client.example", "250"), "STARTTLS")
		if offered != (mode != "none") {
			t.Fatalf("%s: STARTTLS offered: %v", mode, offered)
		}
		if offered {
			c.want(t, "STARTTLS", "220")
			got = c.beginTLS(t, false)
		}
	}
	if got != serial {
		t.Errorf("%s: certificate %d, not %d", mode, got, serial)
	}
	if reply, err := c.verdict("x@spam.example", "b@example.net"); err != nil || !strings.HasPrefix(reply, verdict) {
		t.Errorf("%s: %q, %v", mode, reply, err)
	}
	return c
}

// rawDial connects without reading anything.
func rawDial(t testing.TB, addr string) *client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, waitLimit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &client{conn, bufio.NewReader(conn)}
}

// TestListeners runs several listeners with a TLS, lists and limits of their own
// in front of one Maildir, through reloads that change all of that, through one
// that fails over a broken certificate, and through a handover.
func TestListeners(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writePair := func(cert, key string, serial int64) {
		c, k := pemFiles(t, serial)
		writeFile(t, filepath.Join(dir, cert), c)
		writeFile(t, filepath.Join(dir, key), k)
	}
	writePair("gate.pem", "gate.key", 1)
	writePair("other.pem", "other.key", 2)
	writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example  # unsolicited mail\n")
	writeFile(t, filepath.Join(dir, "empty.txt"), "# nobody\n")
	file := filepath.Join(dir, "config.toml")
	s := setup{lists: blockedLists + "[[list]]\nname = \"empty\"\npath = \"empty.txt\"\n"}
	write := func(tables ...string) {
		s.more = strings.Join(tables, "")
		writeFile(t, file, s.config())
	}
	write(listenerTable("a", "starttls", `lists = ["empty"]`), listenerTable("b", "implicit", "max_connections = 2"))
	g := launchReaped(t, dir, nil, nil, binary(t), "serve")
	addrs := strings.Split(g.waitListening(), ",")
	g.addr = addrs[0]

	n := 0
	check := func(modes [3]string, serials [3]int64, verdicts [3]string) {
		t.Helper()
		for i, addr := range addrs {
			c := wantListener(t, addr, modes[i], serials[i], verdicts[i])
			c.mustSend(t, "a@example.com", "b@example.net", letter("a@example.com", "m"))
			n++
			c.want(t, "QUIT", "221")
			c.Close()
		}
	}
	check([3]string{"none", "starttls", "implicit"}, [3]int64{0, 1, 1}, [3]string{"550", "250", "550"})

	// The third client of the listener gets nothing, not even a handshake, however
	// little the two others say; and has its turn when one of them is gone.
	// While the gate still counts the client before them, one of the two is refused
	// as a third: it dials again.
	silent := []*client{rawDial(t, addrs[2]), rawDial(t, addrs[2])}
	refused := func(c *client, within time.Duration) bool {
		c.SetReadDeadline(time.Now().Add(within))
		_, err := c.in.ReadByte()
		return err != nil && !os.IsTimeout(err)
	}
	pollFor(t, "the limit of connections", func() bool {
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
		g.signal(syscall.SIGHUP)
		reloads++
		g.waitNth(reloads, "reloaded")
	}
	// Limits that change hold for those who are there.
	write(listenerTable("a", "starttls", `lists = ["empty"]`), listenerTable("b", "implicit", "max_connections = 10"))
	reload()
	wantListener(t, addrs[2], "implicit", 1, "550").Close()
	for _, c := range silent {
		c.Close()
	}

	// A certificate that is broken changes nothing, on no listener.
	writeFile(t, filepath.Join(dir, "broken.pem"), "-----BEGIN CERTIFICATE-----\n")
	write(off("a"), strings.ReplaceAll(listenerTable("b", "implicit", ""), "gate.pem", "broken.pem"))
	g.signal(syscall.SIGHUP)
	if why := g.waitRecord("reload failed, nothing has changed").string("error"); !strings.Contains(why, "listener.tls_cert: ") || !strings.Contains(why, "broken.pem") {
		t.Error(why)
	}
	check([3]string{"none", "starttls", "implicit"}, [3]int64{0, 1, 1}, [3]string{"550", "250", "550"})

	// TLS on and off, another certificate, other lists.
	s.keys = map[string]string{"listen": "tls = \"starttls\"\ntls_cert = \"other.pem\"\ntls_key = \"other.key\"\n"}
	write(off("a"), strings.ReplaceAll(listenerTable("b", "implicit", `lists = ["empty"]`), "gate.", "other."))
	reload()
	check([3]string{"starttls", "none", "implicit"}, [3]int64{2, 0, 2}, [3]string{"550", "550", "250"})

	g.handOver()
	check([3]string{"starttls", "none", "implicit"}, [3]int64{2, 0, 2}, [3]string{"550", "550", "250"})
	g.stop()
	g.wantEnded(2)
	found, err := filepath.Glob(filepath.Join(dir, "mail", "new", "*"))
	if err != nil || len(found) != n {
		t.Errorf("%d messages in the Maildir, not %d, %v", len(found), n, err)
	}
}
