package smtpfilter_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/smtptest"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/nexthop"
	"spamgate/smtpfilter/wire"
)

// silences are the points at which a client may fall silent, and the steps to reach them.
var silences = []struct {
	name  string
	wire  func(*smtpfilter.Settings)
	steps string // parted by spaces: text to send, with "_" for a space and escapes as in dialogues; "<" reads a reply, "TLS" shakes hands
}{
	{"PROXY header", proxied, "PROXY_TCP4"},
	{"PROXY header, version 2", proxied, `\r\n\r\n\0\r\nQUIT\n\x21\x11\x0f`},
	{"implicit TLS", implicitTLS, ""},
	{"implicit TLS, in the handshake", implicitTLS, `\x16\x03\x01\x02`},
	{"greeting delay", func(c *smtpfilter.Settings) { c.GreetingDelay = time.Hour }, ""},
	{"greeting", nil, "<"},
	{"under TLS", implicitTLS, `TLS < EHLO_c\r\n <`},
	{"command line", nil, "< EHLO_c"},
	{"EHLO", nil, `< EHLO_c\r\n <`},
	{"STARTTLS", offeredTLS, `< EHLO_c\r\n < STARTTLS\r\n <`},
	{"STARTTLS, in the handshake", offeredTLS, `< EHLO_c\r\n < STARTTLS\r\n < \x16\x03`},
	{"AUTH", implicitTLS, `TLS < EHLO_c\r\n < AUTH_LOGIN\r\n <`},
	{"AUTH, in an answer", implicitTLS, `TLS < EHLO_c\r\n < AUTH_LOGIN\r\n < VXNl`},
	{"MAIL", nil, `< EHLO_c\r\n < MAIL_FROM:<a@example.com>\r\n <`},
	{"RCPT", nil, `< EHLO_c\r\n < MAIL_FROM:<a@example.com>\r\n < RCPT_TO:<b@example.net>\r\n <`},
	{"DATA", nil, toMessage + `DATA\r\n <`},
	{"header", nil, toMessage + `DATA\r\n < Subject:_x\r\nFrom:`},
	{"message", nil, toMessage + `DATA\r\n < Subject:_x\r\n\r\nhello\r\n.`},
	{"refused message", func(c *smtpfilter.Settings) { c.MaxMessageBytes = 100 }, toMessage + `DATA\r\n < \(0123456789\r\n\)*20`},
	{"chunk", nil, toMessage + `BDAT_100_LAST\r\nSubject:`},
	{"between chunks", nil, toMessage + `BDAT_14\r\nSubject:_x\r\n\r\n <`},
	{"between chunks, in a line", nil, toMessage + `BDAT_14\r\nSubject:_x\r\n\r\n < BDAT`},
	{"refused chunk", nil, `< EHLO_c\r\n < BDAT_100_LAST\r\nSubject:`},
	{"chunk behind a refused one", nil, `< EHLO_c\r\n < BDAT_1\r\nx < BDAT_100\r\nSubject:`},
	{"chunk of a listed header sender", nil, toMessage + `BDAT_40\r\nFrom:_l@listed.example\r\n\r\n`},
	{"behind the last reply", nil, `< x\0\r\n <`},
}

const toMessage = `< EHLO_c\r\n < MAIL_FROM:<a@example.com>\r\nRCPT_TO:<b@example.net>\r\n < < `

func proxied(c *smtpfilter.Settings) {
	c.ProxySources = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
}
func implicitTLS(c *smtpfilter.Settings) { c.TLS, c.TLSMode = serverTLS(), wire.TLSImplicit }
func offeredTLS(c *smtpfilter.Settings)  { c.TLS = serverTLS() }

// fallSilent brings a client to such a point.
func fallSilent(t *testing.T, addr, steps string) *client {
	t.Helper()
	c, err := tryToFallSilent(t, addr, steps)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tryToFallSilent is fallSilent for a gate that may disconnect before.
func tryToFallSilent(t *testing.T, addr, steps string) (*client, error) {
	t.Helper()
	c := dial(t, addr)
	for _, step := range strings.Fields(steps) {
		var err error
		switch step {
		case "<":
			var reply string
			if reply, err = c.readReply(); strings.HasPrefix(reply, "421") {
				err = errors.New(reply)
			}
		case "TLS":
			under := tls.Client(c.Conn, &tls.Config{InsecureSkipVerify: true})
			err = under.Handshake()
			c.Conn, c.in = under, bufio.NewReader(under)
		default:
			_, err = io.WriteString(c, smtptest.Expand(strings.ReplaceAll(step, "_", " ")))
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// silentGate returns a gate where a client can reach all of these points.
func silentGate(t *testing.T, set func(*smtpfilter.Settings), cfg smtpfilter.Settings) *gate {
	t.Helper()
	if set != nil {
		set(&cfg)
	}
	sink := smtptest.NewSink(t, smtptest.Config{Extensions: []string{"AUTH LOGIN", "CHUNKING"}})
	g := newGate(t, gateOptions{nextHop: sink.Addr(), wire: cfg, auth: true,
		checker: mustJudge(t, "header l@listed.example reject"),
		policy:  smtpfilter.Policy{HeaderFields: []string{"From"}},
	})
	if err := g.target.(*nexthop.SMTP).Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g
}

// TestSilentClientIsCut wants the gate to disconnect a silent client after the timeout,
// wherever it falls silent. A client that was too slow to reach the point gets a longer
// timeout.
func TestSilentClientIsCut(t *testing.T) {
	for _, tt := range silences {
		if tt.name == "greeting delay" {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var c *client
			var err error
			for patience := 100 * time.Millisecond; c == nil && patience < waitLimit; patience *= 5 {
				g := silentGate(t, tt.wire, smtpfilter.Settings{Rules: wire.Rules{CommandTimeout: patience, DataTimeout: patience}})
				c, err = tryToFallSilent(t, g.addr, tt.steps)
			}
			if c == nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c.in); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stays open")
			}
		})
	}
}

// TestShutdownWithSilentClient wants Shutdown to end with its context, wherever a client
// is silent.
func TestShutdownWithSilentClient(t *testing.T) {
	for _, tt := range silences {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := silentGate(t, tt.wire, smtpfilter.Settings{})
			fallSilent(t, g.addr, tt.steps)
			if tt.name == "refused message" { // cut off, unless so much was read that it is refused
				if err := shutDownNow(t, g); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				return
			}
			shutDown(t, g, strings.Contains(tt.steps, "RCPT"))
		})
	}
}

// TestShutdownInTarpit wants Shutdown not to wait for a delayed refusal.
func TestShutdownInTarpit(t *testing.T) {
	sink := smtptest.NewSink(t)
	g := newGate(t, gateOptions{nextHop: sink.Addr(), tarpit: limit.NewTarpit(10),
		checker: mustJudge(t, "envelope l@listed.example reject"),
		policy:  smtpfilter.Policy{Tarpit: time.Hour},
	})
	fallSilent(t, g.addr, `< EHLO_c\r\n < MAIL_FROM:<l@listed.example>\r\n < RCPT_TO:<b@example.net>\r\n`)
	shutDown(t, g, false)
}

// serverTLS is a TLS server with a certificate of its own making.
var serverTLS = sync.OnceValue(func() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
})
