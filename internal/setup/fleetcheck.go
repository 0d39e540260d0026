package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nkeys"

	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/internal/fleet/credentials"
)

// Fleet finds what would keep the gate out of its fleet: the gate starts nevertheless, and goes on
// alone.
func (f *faults) Fleet() {
	c := &f.config.Fleet
	if !c.On() {
		return
	}
	f.credentials(c)
	f.authorities("fleet.tls_ca", c.TLSCA)
	f.fleetCertificate("fleet", c.TLSCert, c.TLSKey)
	f.fleetCertificate("fleet.server", c.Server.TLSCert, c.Server.TLSKey)
	f.fleetServer(c)
	f.fleetNames(c)
}

// fleetServer checks the server of spamgate-fleetd: its store, and that it speaks TLS if clients are to.
func (f *faults) fleetServer(c *config.Fleet) {
	s := &c.Server
	if s.Listen == "" {
		return
	}
	if info, err := os.Stat(s.Dir); err == nil && !info.IsDir() {
		f.fail("fleet.server.dir", s.Dir+" is not a directory", "remove the file, or name another directory")
	}
	if s.TLSCert == "" && slices.Contains(c.Servers, "tls://"+s.Listen) {
		f.fail("fleet.servers", fmt.Sprintf("has %q, but the server there, of [fleet.server], has no tls_cert", "tls://"+s.Listen),
			`write tls_cert and tls_key in [fleet.server]; or "nats://`+s.Listen+`" here, on all gates`)
	}
}

// credentials checks the file that says who the gate is.
func (f *faults) credentials(c *config.Fleet) {
	const key = "fleet.credentials"
	if c.Credentials == "" {
		return
	}
	who, err := credentials.Read(c.Credentials)
	_, _, other := nkeys.DecodeSeed([]byte(who.Token))
	switch {
	case errors.Is(err, fs.ErrPermission): // this user is not the gate's
	case errors.Is(err, fs.ErrNotExist):
		f.fail(key, c.Credentials+" does not exist", "copy the file of another gate of the fleet there, for the gate's user alone (chmod 600), or correct the path")
	case err != nil:
		what, hint := splitHint(err)
		f.fail(key, what, hint)
	case who.Token != "" && other == nil:
		f.fail(key, c.Credentials+" has a seed that is not a user's", `put the seed of a user there, which begins with "SU"`)
	case who.User && c.Server.Listen != "":
		f.fail(key, c.Credentials+" is of a NATS user, which spamgate-fleetd cannot check", "put one line with a token, or the seed of a user's nkey, into the file")
	}
}

// fleetCertificate checks a certificate and its key.
func (f *faults) fleetCertificate(table, cert, key string) {
	if cert != "" && key != "" {
		f.certificate(certs.Files{Cert: cert, Key: key}, "", func(name string) string { return table + "." + name })
	}
}

// fleetNames checks that the hosts of the servers are known.
func (f *faults) fleetNames(c *config.Fleet) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for key, servers := range map[string][]string{"fleet.servers": c.Servers, "fleet.server.routes": c.Server.Routes} {
		for _, server := range servers {
			u, err := url.Parse(server)
			if err != nil {
				continue // the configuration is checked before
			}
			_, err = net.DefaultResolver.LookupHost(ctx, u.Hostname())
			if lost := new(net.DNSError); errors.As(err, &lost) && lost.IsNotFound {
				f.warn(key, fmt.Sprintf("no host %q is known", u.Hostname()), "correct the name, or add it to DNS or /etc/hosts")
			}
		}
	}
}
