package doors

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"spamgate/internal/e2e/harness"
)

// startDoors starts a gate that need not have a listener, and waits until it is open.
func startDoors(t testing.TB, s harness.Setup) *harness.Gate {
	t.Helper()
	return launchDoors(t, s.Dir(t))
}

// launchDoors starts a gate in a directory that has its files, and waits until it is open.
func launchDoors(t testing.TB, dir string) *harness.Gate {
	t.Helper()
	g := harness.Launch(t, dir, exec.Command(harness.Binary(t), "serve"))
	g.WaitRecord("loaded")
	return g
}

// doorAddr returns the address of an open door.
func doorAddr(g *harness.Gate, name string) string {
	g.T.Helper()
	return g.WaitRecord("door open", "listener", name).Text("addr")
}

// dialDoor connects to a door.
func dialDoor(addr string) (net.Conn, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return net.DialTimeout("unix", path, harness.ReplyTimeout)
	}
	return net.DialTimeout("tcp", addr, harness.ReplyTimeout)
}

// policyClient asks a policy service as Postfix does: over a connection that it keeps and, if
// that has been closed, once more over another.
type policyClient struct {
	addr    string
	conn    net.Conn
	r       *bufio.Reader
	retried int
}

// ask returns the action for a sender.
func (c *policyClient) ask(from string) (string, error) {
	kept := c.conn != nil
	action, err := c.askOnce(from)
	if err != nil && kept {
		c.retried++
		action, err = c.askOnce(from)
	}
	return action, err
}

func (c *policyClient) askOnce(from string) (action string, err error) {
	if c.conn == nil {
		if c.conn, err = dialDoor(c.addr); err != nil {
			return "", err
		}
		c.r = bufio.NewReader(c.conn)
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	c.conn.SetDeadline(time.Now().Add(harness.ReplyTimeout))
	if _, err = fmt.Fprintf(c.conn, "request=smtpd_access_policy\nprotocol_state=RCPT\nsender=%s\nrecipient=b@example.net\n\n", from); err != nil {
		return "", err
	}
	line, err := c.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	if end, err := c.r.ReadString('\n'); end != "\n" {
		return "", fmt.Errorf("after %q came %q, %v", line, end, err)
	}
	return strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "action="), nil
}

func (c *policyClient) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// milterClient is a mail server at a milter.
type milterClient struct {
	net.Conn
	r *bufio.Reader
}

// beginMilter begins a message on a new connection, and returns the answer to its recipient: "c"
// (continue), or "y" and a reply.
func beginMilter(addr, from string) (*milterClient, string, error) {
	conn, err := dialDoor(addr)
	if err != nil {
		return nil, "", err
	}
	c := &milterClient{conn, bufio.NewReader(conn)}
	c.SetDeadline(time.Now().Add(harness.ReplyTimeout))
	err = c.send(
		"O\x00\x00\x00\x06\x00\x00\x01\xff\x00\x1f\xff\xff",
		"Cclient.example\x004\x00\x19192.0.2.1\x00", "Hclient.example\x00", // not answered
		"M<"+from+">\x00", "R<b@example.net>\x00",
	)
	answer := ""
	for range []string{"O", "M", "R"} {
		if err == nil {
			answer, err = c.answer()
		}
	}
	if err != nil {
		c.Close()
	}
	return c, answer, err
}

// send sends packets.
func (c *milterClient) send(packets ...string) error {
	var b []byte
	for _, p := range packets {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(p))), p...)
	}
	_, err := c.Write(b)
	return err
}

// answer reads a packet.
func (c *milterClient) answer() (string, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.r, size[:]); err != nil {
		return "", err
	}
	packet := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(c.r, packet)
	return strings.TrimSuffix(string(packet), "\x00"), err
}

// askMilter returns the answer to the recipient of a message, on a connection of its own.
func askMilter(addr, from string) (string, error) {
	c, answer, err := beginMilter(addr, from)
	if err == nil {
		c.Close()
	}
	return answer, err
}

// askDNS returns the addresses of a name.
func askDNS(network, addr, name string) (string, error) {
	c := dns.Client{Net: network, Timeout: harness.ReplyTimeout}
	reply, _, err := c.Exchange(new(dns.Msg).SetQuestion(name+".", dns.TypeA), addr)
	if err != nil {
		return "", err
	}
	answer := dns.RcodeToString[reply.Rcode]
	for _, rr := range reply.Answer {
		if a, ok := rr.(*dns.A); ok {
			answer += " " + a.A.String()
		}
	}
	return answer, nil
}

// asker returns a function that asks a door whether a domain is listed.
func asker(t testing.TB, kind, addr string) func(domain string) (listed bool) {
	policy := &policyClient{addr: addr}
	t.Cleanup(policy.close)
	return func(domain string) bool {
		t.Helper()
		var text, no string
		var err error
		switch kind {
		case "dns":
			text, err = askDNS("udp", addr, domain+".bl.example.org")
			no = text // that there may be names below it, or that there is none
			if strings.HasSuffix(text, " 127.0.0.2") {
				no = ""
			}
		case "milter":
			no = "c"
			text, err = askMilter(addr, "a@"+domain)
		default:
			no = "DUNNO"
			text, err = policy.ask("a@" + domain)
		}
		if err != nil {
			t.Fatal(err)
		}
		return text != no
	}
}
