package e2e

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certificate is one of a server, which has signed it itself, in files of PEM.
type certificate struct {
	cert, key string // paths
	both      string // path: the key and the certificate
	pin       string // the SHA-256 sum of the public key, in hexadecimal digits
	roots     *x509.CertPool
}

// newCertificate makes a certificate for a name, in a directory that everybody
// can enter.
func newCertificate(t testing.TB, name string) certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: name},
		DNSNames:              []string{name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(30 * 24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "spamgate-tls-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(parsed.RawSubjectPublicKeyInfo)
	c := certificate{
		cert:  filepath.Join(dir, "cert.pem"),
		key:   filepath.Join(dir, "key.pem"),
		both:  filepath.Join(dir, "both.pem"),
		pin:   hex.EncodeToString(sum[:]),
		roots: x509.NewCertPool(),
	}
	c.roots.AddCert(parsed)
	certPEM := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	keyPEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	writeFile(t, c.cert, certPEM)
	writeFile(t, c.key, keyPEM)
	writeFile(t, c.both, keyPEM+certPEM)
	return c
}

// startTLS begins TLS with a server of a name, and greets it anew.
func (c *client) startTLS(t testing.TB, roots *x509.CertPool, name string) *client {
	t.Helper()
	c.want(t, "STARTTLS", "220")
	secure := tls.Client(c.Conn, &tls.Config{RootCAs: roots, ServerName: name})
	t.Cleanup(func() { secure.Close() })
	c.SetDeadline(time.Now().Add(waitLimit))
	if err := secure.Handshake(); err != nil {
		t.Fatalf("TLS with %s: %v", name, err)
	}
	s := &client{secure, bufio.NewReader(secure)}
	s.want(t, "EHLO client.example", "250")
	return s
}
