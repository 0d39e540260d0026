package smtptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"sync"
	"time"
)

// ServerName is the name in the certificate of the servers. The certificate is
// valid for 127.0.0.1 as well.
const ServerName = "next.example"

// ServerTLS returns the TLS configuration of all servers of this process, which
// also resumes their sessions. The caller must not change it.
var ServerTLS = sync.OnceValue(func() *tls.Config {
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		DNSNames:     []string{ServerName},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		panic(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert}}}
})

func leaf() *x509.Certificate { return ServerTLS().Certificates[0].Leaf }

// Roots returns a pool that trusts the servers' certificate.
func Roots() *x509.CertPool {
	roots := x509.NewCertPool()
	roots.AddCert(leaf())
	return roots
}

// Pin returns the SHA-256 sum of the servers' public key (SubjectPublicKeyInfo).
func Pin() [sha256.Size]byte { return sha256.Sum256(leaf().RawSubjectPublicKeyInfo) }
