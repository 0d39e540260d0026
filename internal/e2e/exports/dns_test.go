package exports

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"spamgate/internal/e2e/harness"
)

// TestRBLDNSD asks rbldnsd, which serves an exported dnset.
func TestRBLDNSD(t *testing.T) {
	t.Parallel()
	for _, match := range []string{"subtree", "exact"} {
		l := newList(t, match, groupsFor(2, decisions()))
		file, _ := l.export(t, "rbldnsd")
		l.compare(t, startRBLDNSD(t, file).refuses, notForZones)
	}
}

const namedConf = `options {
	directory "%[1]s";
	listen-on port %[3]s { %[2]s; };
	listen-on-v6 { none; };
	pid-file none;
	session-keyfile none;
	managed-keys-directory "%[1]s";
	recursion yes;
	allow-recursion { any; };
	dnssec-validation no;
	empty-zones-enable no;
	response-policy { zone "rpz.test"; } qname-wait-recurse no;
};
controls { };
zone "." { type primary; file "root"; };
zone "rpz.test" { type primary; file "%[4]s"; };
`

// rootZone has an answer for every name.
const rootZone = `$TTL 1h
. SOA localhost. hostmaster.localhost. ( 1 1h 15m 30d 2h )
. NS localhost.
localhost. A 127.0.0.1
*. A 192.0.2.9
`

// TestNamed asks BIND's named, which has an exported response policy zone. A name that the
// zone refuses does not exist for its clients.
func TestNamed(t *testing.T) {
	t.Parallel()
	check := harness.Program(t, "named-checkzone", "bind9-utils")
	for _, match := range []string{"subtree", "exact"} {
		l := newList(t, match, groupsFor(3, decisions()))
		file, _ := l.export(t, "rpz")
		if out, _, code := harness.Run(t, exec.Command(check, "-k", "fail", "rpz.test", file)); code != 0 {
			t.Fatalf("named-checkzone: %s", out)
		}
		d := startNamed(t, l.dir, file)
		l.compare(t, func(sender string) (refused, asked bool) {
			domain := domainOf(sender)
			if domain == "" {
				return false, false
			}
			code, _ := d.ask(domain + ".")
			return code == dnsmessage.RCodeNameError, true
		}, notForZones)
	}
}

// startNamed starts a named that has the file as its policy zone, and waits until the zone
// has an effect: named answers before that.
func startNamed(t *testing.T, dir, zone string) *dnsServer {
	t.Helper()
	program := harness.Program(t, "named", "bind9")
	host, port := "127.0.0.1", freePort(t) // named takes addresses of interfaces only
	harness.WriteFile(t, filepath.Join(dir, "root"), rootZone)
	harness.WriteFile(t, filepath.Join(dir, "named.conf"), fmt.Sprintf(namedConf, dir, host, port, zone))
	d := startDNS(t, host, port, exec.Command(program, "-g", "-n", "1", "-c", filepath.Join(dir, "named.conf")))
	harness.WaitFor(t, "the policy zone to refuse "+marker, func() bool {
		code, _, err := d.query(marker+".", time.Second)
		return err == nil && code == dnsmessage.RCodeNameError
	})
	return d
}

// freePort returns a port of 127.0.0.1 that is free.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// A dnsServer is a DNS server of a test.
type dnsServer struct {
	t    *testing.T
	conn net.Conn
	pid  int
	id   uint16
}

// startDNS starts a DNS server, which ends with the test, and waits until it answers.
func startDNS(t *testing.T, host, port string, cmd *exec.Cmd) *dnsServer {
	t.Helper()
	out := harness.NewOutput(t, filepath.Base(cmd.Path))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	conn, err := net.Dial("udp", net.JoinHostPort(host, port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	d := &dnsServer{t: t, conn: conn, pid: cmd.Process.Pid}
	harness.WaitFor(t, cmd.Path+" to answer", func() bool {
		_, _, err := d.query("ready.test.", time.Second)
		return err == nil
	})
	return d
}

// ask returns the answer to a question for an address.
func (d *dnsServer) ask(name string) (code dnsmessage.RCode, answers int) {
	d.t.Helper()
	code, answers, err := d.query(name, harness.ReplyTimeout)
	if err != nil || code != dnsmessage.RCodeSuccess && code != dnsmessage.RCodeNameError {
		d.t.Fatalf("%s: %v, %v", name, code, err)
	}
	return code, answers
}

// query sends a question and waits for the answer to it.
func (d *dnsServer) query(name string, wait time.Duration) (code dnsmessage.RCode, answers int, err error) {
	n, err := dnsmessage.NewName(name)
	if err != nil {
		return 0, 0, err
	}
	d.id++
	question := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: d.id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: n, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	text, err := question.Pack()
	if err != nil {
		return 0, 0, err
	}
	if _, err = d.conn.Write(text); err != nil {
		return 0, 0, err
	}
	d.conn.SetReadDeadline(time.Now().Add(wait))
	var buf [4096]byte
	for {
		size, err := d.conn.Read(buf[:])
		if err != nil {
			return 0, 0, err
		}
		var answer dnsmessage.Message
		if err = answer.Unpack(buf[:size]); err != nil {
			return 0, 0, err
		}
		if answer.ID == d.id {
			if answer.Truncated {
				return 0, 0, errors.New("truncated")
			}
			return answer.RCode, len(answer.Answers), nil
		}
	}
}
