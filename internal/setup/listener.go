package setup

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/wire"
)

// Settings returns the settings for the clients of a listener. The caller sets Checker,
// NextHop and what else the running gate has: TLS has no certificate yet.
func Settings(c *config.Config, l config.Listener) smtpfilter.Settings {
	s := smtpfilter.Settings{
		Policy:         Policy(c, l),
		NoNames:        !l.NameLookup,
		PassAuth:       l.Logins(),
		RequireAuth:    l.Auth == config.AuthRequire,
		Rules:          l.Rules,
		RejectPregreet: l.Pregreet == "reject",
		Normalize:      normalize(l),
	}
	switch l.TLS {
	case "required":
		s.TLSMode = wire.TLSRequired
	case "implicit":
		s.TLSMode = wire.TLSImplicit
	}
	return s
}

// normalize returns a function that reports whether a client's bare newlines are normalised,
// or nil if no client's are.
func normalize(l config.Listener) func(netip.Addr) bool {
	usually := l.BareNewline == "normalize"
	if !usually && len(l.BareNewlineExcept) == 0 {
		return nil
	}
	return func(client netip.Addr) bool {
		except := slices.ContainsFunc(l.BareNewlineExcept, func(p netip.Prefix) bool { return p.Contains(client) })
		return usually != except
	}
}

// Judged is a listener or a door, as far as it decides.
type Judged struct {
	Name   string
	Lists  []string          // names of the lists that apply; empty: all
	Policy smtpfilter.Policy // without recipients from files, see SetRecipients
	Door   *config.Door      // nil: a listener

	Listener *config.Listener // nil: a door
}

// FindJudged returns the listener or door of a name. If name is "" it returns the first
// listener, or the first door if there is none.
func FindJudged(c *config.Config, name string) (Judged, error) {
	var all []Judged
	for _, l := range c.Listeners {
		all = append(all, Judged{l.Name, l.Lists, Policy(c, l), nil, &l})
	}
	for _, d := range c.Doors {
		all = append(all, Judged{d.Name, d.Lists, DoorPolicy(c, d), &d, nil})
	}
	var names []string
	for _, j := range all {
		if j.Name == name || name == "" {
			return j, nil
		}
		names = append(names, strconv.Quote(j.Name))
	}
	return Judged{}, fmt.Errorf("there is no listener or door %q; there is %s", name, strings.Join(names, ", "))
}

// OpenCertificates opens the listener's certificates, or returns nil if it has none.
func OpenCertificates(l config.Listener, log *slog.Logger) (*certs.Reloader, error) {
	if l.TLS == "none" {
		return nil, nil
	}
	return OpenCertificateFiles("listener "+l.Name, l.TLSCert, l.TLSKey, log)
}

// OpenCertificateFiles opens the certificates of what errors call by that name.
func OpenCertificateFiles(name string, cert, key config.Files, log *slog.Logger) (*certs.Reloader, error) {
	all, err := certs.Open(certificateFiles(cert, key), certs.Options{Logger: log})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

// certificateFiles returns the files of certificates.
func certificateFiles(cert, key config.Files) []certs.Files {
	var files []certs.Files
	for i := range cert {
		files = append(files, certs.Files{Cert: cert[i], Key: key[i]})
	}
	return files
}
