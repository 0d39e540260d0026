package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"spamgate/internal/fleet/fleettest"
)

// TestCertificateExpired has a server that does not run at first, and then has a certificate that
// has expired, which only the handshake tells: the status says so.
func TestCertificateExpired(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	s := fleettest.Start(t, func(o *server.Options) {
		o.TLSConfig = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	})
	g := newGate(t, "mx1", s, func(o *Options) { o.TLS = &tls.Config{RootCAs: roots} })
	s.Stop()
	g.start()
	eventually(t, "the status says why", func() bool { return strings.Contains(g.Status().Trouble, "connection refused") })
	s.Restart()
	eventually(t, "the status says what is wrong now", func() bool { return strings.Contains(g.Status().Trouble, "certificate has expired") })
}
