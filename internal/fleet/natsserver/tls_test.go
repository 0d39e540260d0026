package natsserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// authority signs certificates for 127.0.0.1.
type authority struct {
	t    testing.TB
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key, file: filepath.Join(t.TempDir(), "ca.pem")}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(a.file, "CERTIFICATE", der)
	return a
}

func (a *authority) write(file, kind string, der []byte) {
	a.t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// pair returns the files of a certificate that begins then.
func (a *authority) pair(begin time.Time) (cert, key string) {
	a.t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: begin, NotAfter: begin.Add(2 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &own.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		a.t.Fatal(err)
	}
	dir := a.t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	a.write(cert, "CERTIFICATE", der)
	a.write(key, "PRIVATE KEY", text)
	return cert, key
}

// TestTLS has servers that speak TLS to clients.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	all := options(t, 3)
	for i := range all {
		all[i].Cert, all[i].Key = ca.pair(time.Now().Add(-time.Hour))
	}
	cluster(t, all)
	nc, err := nats.Connect("tls://"+all[0].Listen, nats.RootCAs(ca.file), nats.Token(token))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := put(bucket(t, nc, "b", 3), "k", "v"); err != nil {
		t.Error(err)
	}
	if nc, err := nats.Connect("nats://"+all[0].Listen, nats.Token(token), nats.Secure(&tls.Config{RootCAs: x509.NewCertPool()})); err == nil {
		nc.Close()
		t.Error("a client trusts an unknown authority")
	}
	// A client that speaks no TLS learns nothing, and is not let in.
	c, err := net.Dial("tcp", all[0].Listen)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(`CONNECT {"auth_token":"` + token + `"}` + "\r\nPING\r\n")); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 64<<10)
	n := 0
	for {
		more, err := c.Read(text[n:])
		if n += more; err != nil || n == len(text) {
			break
		}
	}
	if strings.Contains(string(text[:n]), "PONG") {
		t.Errorf("%q", text[:n])
	}
}

// TestReadCertificates has another authority's certificate in the files: clients get that, and still get
// it when the files are damaged.
func TestReadCertificates(t *testing.T) {
	t.Parallel()
	o := options(t, 1)[0]
	o.Cert, o.Key = newAuthority(t).pair(time.Now().Add(-time.Hour))
	s := start(t, o)
	ca := newAuthority(t)
	cert, key := ca.pair(time.Now().Add(-time.Hour))
	for from, to := range map[string]string{cert: o.Cert, key: o.Key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.ReadCertificates(); err != nil {
		t.Fatal(err)
	}
	trusted := func() {
		t.Helper()
		nc, err := nats.Connect("tls://"+o.Listen, nats.RootCAs(ca.file), nats.Token(token))
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
	}
	trusted()
	if err := os.WriteFile(o.Key, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.ReadCertificates(); err == nil || !strings.Contains(err.Error(), o.Key) {
		t.Errorf("error %v", err)
	}
	trusted()
}
