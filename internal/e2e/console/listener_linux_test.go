package console

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"spamgate/internal/e2e/harness"
)

// configure writes the configuration of a gate again, and reloads it.
func configure(t testing.TB, g *harness.Gate, s harness.Setup, outcome string) {
	t.Helper()
	n := len(g.Records(outcome))
	harness.WriteFile(t, filepath.Join(g.Dir, "config.toml"), s.Config())
	g.Signal(syscall.SIGHUP)
	harness.WaitFor(t, outcome, func() bool { return len(g.Records(outcome)) > n })
}

// TestReload opens the console by a reload, has it speak TLS, changes the certificate, the name
// and the address, and closes it. What cannot be applied changes nothing.
func TestReload(t *testing.T) {
	t.Parallel()
	with := func(table string) harness.Setup { return harness.Setup{Tables: table} }
	g := harness.StartGate(t, with(""))
	addr := harness.FreeAddr(t)
	configure(t, g, with(harness.ConsoleTable(addr)), "reloaded")
	g.AddUser("ann", "admin")
	plain := newVisitor(t, "http://"+addr, addr, nil)
	plain.wantIn("ann", "Cookie", plain.login("ann"))

	cert := filepath.Join(g.Dir, "cert.pem")
	renew := func() *x509.CertPool {
		c := harness.NewCertificate(t, proxyName)
		text, err := os.ReadFile(c.Both)
		if err != nil {
			t.Fatal(err)
		}
		harness.WriteFile(t, cert, string(text))
		return c.Roots
	}
	first := renew()
	secure := []string{`url = "https://` + proxyName + `"`, `tls_cert = "cert.pem"`, `tls_key = "cert.pem"`}
	configure(t, g, with(harness.ConsoleTable(addr, secure...)), "reloaded")
	v := newVisitor(t, "https://"+proxyName, addr, first)
	cookie := v.login("ann")
	v.wantIn("ann", "Cookie", cookie)
	if protocol := negotiated(t, addr, &tls.Config{RootCAs: first, ServerName: proxyName, NextProtos: []string{"h2"}}); protocol != "h2" {
		t.Errorf("the protocol is %q", protocol)
	}

	second := renew()
	harness.WaitFor(t, "the new certificate", func() bool {
		c, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: second, ServerName: proxyName})
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	configure(t, g, with(harness.ConsoleTable(addr, strings.ReplaceAll(strings.Join(secure, "\n"), "cert.pem", "none.pem"))), "reload failed, nothing has changed")
	newVisitor(t, "https://"+proxyName, addr, second).wantIn("ann", "Cookie", cookie)

	other := harness.FreeAddr(t)
	configure(t, g, with(harness.ConsoleTable(other)), "reloaded")
	again := newVisitor(t, "http://"+other, other, nil)
	again.wantIn("ann", "Cookie", again.login("ann"))
	wantNobody(t, addr)
	configure(t, g, with(""), "reloaded")
	wantNobody(t, other)
}

// negotiated returns the protocol after a TLS handshake.
func negotiated(t testing.TB, addr string, c *tls.Config) string {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, c)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().NegotiatedProtocol
}

// wantNobody fails the test if somebody listens at an address.
func wantNobody(t testing.TB, addr string) {
	t.Helper()
	if c, err := net.Dial("tcp", addr); err == nil {
		c.Close()
		t.Errorf("somebody listens at %s", addr)
	}
}

// TestHandedOver hands the console's sockets over. A session goes on, a live view ends so that
// the browser connects to the new process, and the last process removes the file of a Unix socket.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	for _, unix := range []bool{true, false} {
		t.Run(fmt.Sprintf("unix=%v", unix), func(t *testing.T) {
			t.Parallel()
			addr, url, lines := harness.FreeAddr(t), "", []string(nil)
			url = "http://" + addr
			if unix {
				dir, err := os.MkdirTemp("", "console-")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(dir) })
				addr, url = "unix:"+filepath.Join(dir, "c.sock"), "https://"+proxyName
				lines = []string{`url = "` + url + `"`}
			}
			// A request by the proxy at a Unix socket has no TLS, whatever the URL.
			place := "http://" + strings.TrimPrefix(strings.TrimPrefix(url, "https://"), "http://")
			g := harness.LaunchSuccession(t, harness.Setup{Tables: harness.ConsoleTable(addr, lines...)}.Dir(t), nil, nil, harness.Binary(t), "serve")
			g.Addr = g.WaitListening()
			g.AddUser("ann", "admin")
			v := newVisitor(t, place, addr, nil)
			cookie := v.login("ann")
			ended := live(t, v, cookie)
			g.HandOver()
			if err := <-ended; err != nil {
				t.Errorf("the live view: %v", err)
			}
			v.wantIn("ann", "Cookie", cookie)
			if path, ok := strings.CutPrefix(addr, "unix:"); ok {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o660 {
					t.Errorf("the socket: %v, %v", info, err)
				}
				g.Signal(syscall.SIGTERM)
				g.Wait()
				if _, err := os.Stat(path); !os.IsNotExist(err) {
					t.Errorf("the socket is left: %v", err)
				}
			}
		})
	}
}

// live opens a live view, and returns a channel that gets the error with which it ends; nil if the
// server has ended it.
func live(t testing.TB, v *visitor, cookie string) <-chan error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.WorkTimeout)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+"/mail/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Cookie", cookie)
	client := &http.Client{Transport: v.client.Transport}
	response, err := client.Do(r)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the live view: %v, %v", response, err)
	}
	lines := bufio.NewReader(response.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		defer response.Body.Close()
		_, err := io.Copy(io.Discard, lines)
		ended <- err
	}()
	return ended
}

// TestStartTaken: an address that is taken ends the start, with its place in the configuration.
func TestStartTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g := harness.LaunchGate(t, harness.Setup{Tables: harness.ConsoleTable(l.Addr().String())})
	if code := g.Wait(); code == 0 || !strings.Contains(g.Log.String(), "console.addr") || !strings.Contains(g.Log.String(), "address already in use") {
		t.Errorf("exit code %d:\n%s", code, g.Log)
	}
}

// TestReloadBeforeListening reloads a gate that waits for its next hop, with what lets it listen
// without. The servers that the reload has opened are not opened again.
func TestReloadBeforeListening(t *testing.T) {
	t.Parallel()
	addr, metrics := harness.FreeAddr(t), harness.FreeAddr(t)
	s := harness.Setup{
		Listen: "0.0.0.0:0", NextHop: "smtp://" + harness.FreeAddr(t),
		Tables: harness.ConsoleTable(addr) + "[admin]\nmetrics_addr = \"" + metrics + "\"\n",
	}
	g := harness.LaunchGate(t, s)
	g.Log.Wait("it waits", func(line string) bool { return strings.Contains(line, "not listening yet") })
	s.Tables += "[policy]\nrecipient_domains = [\"example.net\"]\n"
	configure(t, g, s, "reloaded")
	g.Addr = g.WaitListening()
	g.AddUser("ann", "admin")
	v := newVisitor(t, "http://"+addr, addr, nil)
	v.wantIn("ann", "Cookie", v.login("ann"))
}
