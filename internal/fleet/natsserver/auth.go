package natsserver

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"spamgate/internal/fleet/credentials"
)

// restrict lets in only clients with the credentials, or with the read-only ones made of them.
func restrict(o *server.Options, who credentials.Credentials) error {
	if who.User {
		return ErrCredentials
	}
	reader, err := who.ReadOnly()
	if err != nil {
		return err
	}
	if who.Token != "" {
		o.CustomClientAuthentication = &tokens{sha256.Sum256([]byte(who.Token)), sha256.Sum256([]byte(reader.Token))}
		return nil
	}
	all, err := publicKey(who.Seed)
	if err != nil {
		return err
	}
	some, err := publicKey(reader.Seed)
	o.Nkeys = []*server.NkeyUser{{Nkey: all}, {Nkey: some, Permissions: readOnly()}}
	return err
}

func publicKey(seed string) (string, error) {
	kp, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return "", err
	}
	defer kp.Wipe()
	return kp.PublicKey()
}

// tokens checks tokens by their digests.
type tokens struct{ member, reader [sha256.Size]byte }

// Check implements server.Authentication.
func (t *tokens) Check(c server.ClientAuthentication) bool {
	got := sha256.Sum256([]byte(c.GetOpts().Token))
	switch {
	case subtle.ConstantTimeCompare(got[:], t.member[:]) == 1:
		return true
	case subtle.ConstantTimeCompare(got[:], t.reader[:]) == 1:
		c.RegisterUser(&server.User{Username: "reader", Permissions: readOnly()})
		return true
	}
	return false
}

// readOnly returns the permissions of a member that takes lists, answers questions and shows
// that it lives. It cannot see the other members: who reads a stream tells the server where to
// send the messages, whatever the permissions, so that it must read nothing of one to which it
// writes.
func readOnly() *server.Permissions {
	const api = "$JS.API."
	p := []string{
		"$JS.FC.>", "$KV.spamgate-members.>",
		api + "INFO", api + "STREAM.INFO.*", api + "CONSUMER.INFO.*.*", api + "CONSUMER.DELETE.*.*",
	}
	for _, stream := range []string{"KV_spamgate-lists", "KV_spamgate-state", "OBJ_spamgate-content"} {
		for _, read := range []string{"CONSUMER.CREATE.", "DIRECT.GET."} {
			p = append(p, api+read+stream, api+read+stream+".>")
		}
		p = append(p, api+"STREAM.MSG.GET."+stream)
	}
	return &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: p},
		Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>", "spamgate.ask.>"}},
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
