package natsserver

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"spamgate/internal/fleet"
	"spamgate/internal/fleet/credentials"
)

// restrict lets in only clients with the credentials, or with the read-only ones made of them.
func restrict(o *server.Options, who credentials.Credentials) error {
	if who.User {
		return ErrCredentials
	}
	if _, err := who.ReadOnly(""); err != nil {
		return err
	}
	o.CustomClientAuthentication = &clients{who}
	o.AlwaysEnableNonce = true // for nkeys
	return nil
}

// clients checks who a client is.
type clients struct{ member credentials.Credentials }

// Check implements server.Authentication. A reader has the credentials of the name that it gives.
func (s *clients) Check(c server.ClientAuthentication) bool {
	if has(c, s.member) {
		return true
	}
	name, ok := strings.CutPrefix(c.GetOpts().Name, fleet.ClientName(""))
	if !ok || name == "" {
		return false
	}
	reader, err := s.member.ReadOnly(name)
	if err != nil || !has(c, reader) {
		return false
	}
	c.RegisterUser(&server.User{Username: "reader", Permissions: readOnly(name)})
	return true
}

// has reports whether a client has credentials.
func has(c server.ClientAuthentication, who credentials.Credentials) bool {
	opts := c.GetOpts()
	if who.Token != "" {
		got, want := sha256.Sum256([]byte(opts.Token)), sha256.Sum256([]byte(who.Token))
		return subtle.ConstantTimeCompare(got[:], want[:]) == 1
	}
	kp, err := nkeys.FromSeed([]byte(who.Seed))
	if err != nil {
		return false
	}
	defer kp.Wipe()
	public, err := kp.PublicKey()
	if err != nil || opts.Nkey != public {
		return false
	}
	signature, err := base64.RawURLEncoding.DecodeString(opts.Sig)
	return err == nil && len(c.GetNonce()) > 0 && kp.Verify(c.GetNonce(), signature) == nil
}

// readOnly returns the permissions of a member of that name which takes lists, answers questions and
// shows that it lives. It asks other members, since who may ask JetStream has the server write the
// answer anywhere. They answer to its own inbox only.
func readOnly(name string) *server.Permissions {
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{fleet.ReadSubject(name)}},
		Subscribe: &server.SubjectPermission{Allow: []string{fleet.Inbox(name) + ".>", "spamgate.ask.>"}},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: time.Minute},
	}
}

// routeName is in the certificates of routes.
const routeName = "fleet.spamgate.invalid"

// routeTLS returns the configuration for both ends of a route. Each end proves that it has the
// key, which is made of the credentials, before it tells anything: a stranger can neither connect
// nor take the address of a server that is down. All have the same certificate.
func routeTLS(key ed25519.PrivateKey) (*tls.Config, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{routeName},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), // clocks may be wrong
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	only := x509.NewCertPool()
	only.AddCert(cert)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: routeName,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs:      only, ClientCAs: only, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}
