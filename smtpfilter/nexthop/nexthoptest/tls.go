package nexthoptest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"sync"
	"time"
)

// ServerName is the name that the certificate of Script and Sink is for; it is
// for 127.0.0.1 as well.
const ServerName = "next.example"

// authority made the certificate of all servers of this process. What fails here
// fails for want of randomness, and panics.
var authority = sync.OnceValue(newAuthority)

type certificates struct {
	roots  *x509.CertPool
	server *tls.Config // one for all, so that sessions can be resumed
	leaf   *x509.Certificate
}

func newAuthority() certificates {
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "authority for tests"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: ServerName},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		DNSNames:     []string{ServerName},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	caKey, leafKey := newKey(), newKey()
	caBytes := sign(ca, ca, caKey, caKey)
	leafBytes := sign(leaf, ca, leafKey, caKey)
	c := certificates{roots: x509.NewCertPool(), leaf: parse(leafBytes)}
	c.roots.AddCert(parse(caBytes))
	c.server = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leafBytes}, PrivateKey: leafKey}}}
	return c
}

func parse(der []byte) *x509.Certificate {
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return cert
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func sign(cert, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, key.Public(), parentKey)
	if err != nil {
		panic(err)
	}
	return der
}

// Roots trusts the authority that made the servers' certificate.
func Roots() *x509.CertPool { return authority().roots }

// ServerTLS is how the servers speak TLS, for another server of the same test. Not
// to be changed.
func ServerTLS() *tls.Config { return authority().server }

// Pin is the SHA-256 sum of the servers' public key (SubjectPublicKeyInfo).
func Pin() [sha256.Size]byte { return sha256.Sum256(authority().leaf.RawSubjectPublicKeyInfo) }
