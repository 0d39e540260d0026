package harness

import (
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

// A Certificate is a self-signed certificate of a server, in PEM files.
type Certificate struct {
	Cert, Key string // files
	Both      string // file with the key and the certificate
	Pin       string // SHA-256 of the public key, in hexadecimal
	Roots     *x509.CertPool
}

// NewCertificate makes a certificate for a host name, in a directory that every user can
// read.
func NewCertificate(t testing.TB, name string) Certificate {
	t.Helper()
	cert, key := NewPEM(t, name, time.Now().UnixNano())
	block, _ := pem.Decode([]byte(cert))
	parsed, err := x509.ParseCertificate(block.Bytes)
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
	c := Certificate{
		Cert:  filepath.Join(dir, "cert.pem"),
		Both:  filepath.Join(dir, "both.pem"),
		Key:   filepath.Join(dir, "key.pem"),
		Pin:   hex.EncodeToString(sum[:]),
		Roots: x509.NewCertPool(),
	}
	c.Roots.AddCert(parsed)
	WriteFile(t, c.Cert, cert)
	WriteFile(t, c.Key, key)
	WriteFile(t, c.Both, key+cert)
	return c
}

// NewPEM returns a self-signed certificate for a host name, and its key.
func NewPEM(t testing.TB, name string, serial int64) (cert, key string) {
	t.Helper()
	return NewPEMUntil(t, name, serial, time.Now().AddDate(0, 1, 0))
}

// NewPEMUntil is NewPEM for a certificate that expires at a time.
func NewPEMUntil(t testing.TB, name string, serial int64, notAfter time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(serial),
		Subject:               pkix.Name{CommonName: name},
		DNSNames:              []string{name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              notAfter,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	certDER, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
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
	return block("CERTIFICATE", certDER), block("PRIVATE KEY", keyDER)
}

// StartTLS starts TLS, checks the server's name, and returns a client that has said EHLO
// again.
func (c *Client) StartTLS(t testing.TB, roots *x509.CertPool, name string) *Client {
	t.Helper()
	c.Want(t, "STARTTLS", "220")
	secure := tls.Client(c.Conn, &tls.Config{RootCAs: roots, ServerName: name})
	t.Cleanup(func() { secure.Close() })
	c.SetDeadline(time.Now().Add(ReplyTimeout))
	if err := secure.Handshake(); err != nil {
		t.Fatalf("TLS with %s: %v", name, err)
	}
	s := NewClient(secure)
	s.Want(t, "EHLO client.example", "250")
	return s
}
