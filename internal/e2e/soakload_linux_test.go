package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

// This file is the load of the soak.

// soakKind is a kind of client.
type soakKind struct {
	name   string
	domain string // of its senders
	send   func(c *soakClient, sender string) (fate, error)
}

var soakKinds = []soakKind{
	{"small, kept", "example.com", sendKept(500, false)},
	{"small, kept, TLS", "example.com", sendKept(500, true)},
	{"4 KiB, a connection each", "example.com", sendOnce(4<<10, false)},
	{"4 KiB, a connection each, TLS", "example.com", sendOnce(4<<10, true)},
	{"1 MiB", "example.com", sendKept(1<<20, false)},
	{"1 MiB, TLS", "example.com", sendKept(1<<20, true)},
	{"chunks", "example.com", soakChunks},
	{"tagged", "first.tagged.example", sendKept(500, false)},
	{"listed", "last.blocked.example", sendListed},
	{"listed in the header", "example.com", sendListedHeader},
	{"bare LF", "example.com", sendBareLF},
	{"reset in the message", "example.com", sendReset},
}

// soakClient is a client and its connection, if it has one.
type soakClient struct {
	addr, from string
	c          *client
	used       int
}

// soakKeeps is how many messages a connection is kept for.
const soakKeeps = 50

// greeted has a connection, an old one or a new one.
func (k *soakClient) greeted(secure bool) error {
	if k.used++; k.c != nil && k.used <= soakKeeps {
		return nil
	}
	k.close()
	c, err := dial(k.addr, k.from)
	if err != nil {
		return err
	}
	if secure {
		if reply, err := c.ask("STARTTLS"); err != nil || !strings.HasPrefix(reply, "220") {
			return fmt.Errorf("STARTTLS: %q, %w", reply, err)
		}
		// Who the gate is was not made known to anybody; the load is about sizes.
		conn := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true})
		c = &client{conn, bufio.NewReader(conn)}
		if reply, err := c.ask("EHLO client.example"); err != nil || !strings.HasPrefix(reply, "250") {
			return fmt.Errorf("EHLO under TLS: %q, %w", reply, err)
		}
	}
	k.c, k.used = c, 1
	return nil
}

func (k *soakClient) close() {
	if k.c != nil {
		k.c.Close()
		k.c = nil
	}
}

// outcome is the fate of a message by the reply that it must get.
func outcome(reply string, err error, want string, became fate) (fate, error) {
	if err != nil || !strings.HasPrefix(reply, want) {
		return became, fmt.Errorf("%q, %w; want %q", reply, err, want)
	}
	return became, nil
}

// sized is a message of about so many bytes.
func sized(from string, size int) []byte {
	text := letter(from, "soak")
	const line = "0123456789012345678901234567890123456789012345678901234567890123456789\r\n"
	return []byte(text + strings.Repeat(line, max(0, size-len(text))/len(line)))
}

func sendKept(size int, secure bool) func(*soakClient, string) (fate, error) {
	return func(k *soakClient, sender string) (fate, error) {
		if err := k.greeted(secure); err != nil {
			return soakRefused, err
		}
		reply, err := k.c.send(sender, "b@example.net", sized("a@example.com", size))
		return outcome(reply, err, "250 ", soakTaken)
	}
}

func sendOnce(size int, secure bool) func(*soakClient, string) (fate, error) {
	send := sendKept(size, secure)
	return func(k *soakClient, sender string) (fate, error) {
		defer k.close()
		return send(k, sender)
	}
}

// envelope asks for a sender and a recipient.
func (c *client) envelope(sender string) error {
	for _, line := range []string{"MAIL FROM:<" + sender + ">", "RCPT TO:<b@example.net>"} {
		if reply, err := c.ask(line); err != nil || !strings.HasPrefix(reply, "250") {
			return fmt.Errorf("%s: %q, %w", line, reply, err)
		}
	}
	return nil
}

// soakChunks sends a message in three chunks without waiting between them.
func soakChunks(k *soakClient, sender string) (fate, error) {
	if err := k.greeted(false); err != nil {
		return soakRefused, err
	}
	if err := k.c.envelope(sender); err != nil {
		return soakRefused, err
	}
	message := sized("a@example.com", 20_000)
	fmt.Fprintf(k.c, "BDAT 1000\r\n%sBDAT 10000\r\n%sBDAT %d LAST\r\n%s", message[:1000], message[1000:11_000], len(message)-11_000, message[11_000:])
	for range 2 {
		if reply, err := k.c.reply(); err != nil || !strings.HasPrefix(reply, "250 ") {
			return soakRefused, fmt.Errorf("a chunk: %q, %w", reply, err)
		}
	}
	reply, err := k.c.reply()
	return outcome(reply, err, "250 ", soakTaken)
}

func sendListed(k *soakClient, sender string) (fate, error) {
	if err := k.greeted(false); err != nil {
		return soakRefused, err
	}
	reply, err := k.c.verdict(sender, "b@example.net")
	return outcome(reply, err, "550 ", soakRefused)
}

func sendListedHeader(k *soakClient, sender string) (fate, error) {
	if err := k.greeted(false); err != nil {
		return soakRefused, err
	}
	reply, err := k.c.send(sender, "b@example.net", sized("x@first.blocked.example", 5000))
	return outcome(reply, err, "550 ", soakRefused)
}

func sendBareLF(k *soakClient, sender string) (fate, error) {
	if err := k.greeted(false); err != nil {
		return soakRefused, err
	}
	defer k.close() // as the gate does
	reply, err := k.c.send(sender, "b@example.net", append(sized("a@example.com", 3000), "a\nb\r\n"...))
	return outcome(reply, err, "550 5.5.2", soakRefused)
}

// sendReset goes away in the middle of a message.
func sendReset(k *soakClient, sender string) (fate, error) {
	if err := k.greeted(false); err != nil {
		return soakRefused, err
	}
	defer k.close()
	if err := k.c.envelope(sender); err != nil {
		return soakRefused, err
	}
	reply, err := k.c.ask("DATA")
	if err == nil {
		_, err = k.c.Write(sized("a@example.com", 30_000))
	}
	k.c.Conn.(*net.TCPConn).SetLinger(0)
	return outcome(reply, err, "354", soakRefused)
}

// soakCertificate makes a certificate for the gate.
func soakCertificate(t testing.TB) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "gate.example"},
		DNSNames:     []string{"gate.example"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	certBytes, err := x509.CreateCertificate(rand.Reader, form, form, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return block("CERTIFICATE", certBytes), block("PRIVATE KEY", keyBytes)
}
