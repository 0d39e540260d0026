package setup

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"

	"spamgate/blocklist/store"
	"spamgate/internal/atomicfile"
	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/internal/fleet"
	"spamgate/internal/version"
)

// Fleet returns what a gate shares, and with whom. An error is about the files of [fleet].
func Fleet(c *config.Config) (fleet.Options, error) {
	f := &c.Fleet
	o := fleet.Options{
		Name: f.Name, Version: version.Number, Servers: f.Servers, Credentials: f.Credentials,
		StateDir: c.State.Dir, Lists: FleetLists(c),
	}
	if f.TLSCA == "" && f.TLSCert == "" {
		return o, nil
	}
	o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if f.TLSCA != "" {
		roots, err := certs.LoadPool(f.TLSCA)
		if err != nil {
			return o, fmt.Errorf("fleet.tls_ca: %w", err)
		}
		o.TLS.RootCAs = roots
	}
	if f.TLSCert != "" {
		load := func() (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey)
			return &pair, err
		}
		if _, err := load(); err != nil {
			return o, fmt.Errorf("fleet.tls_cert: %w", err)
		}
		o.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return load() } // it may be renewed
	}
	return o, nil
}

// FleetLists returns the lists that a gate shares.
func FleetLists(c *config.Config) (lists []fleet.List) {
	for _, l := range c.Lists {
		if !l.Fleet {
			continue
		}
		list := fleet.List{Name: l.Name, Kind: fleet.Managed, Path: l.Copy, MaxBytes: cmp.Or(l.MaxBytes, store.DefaultMaxBytes), Options: ListOptions(l)}
		if l.URL != "" {
			list.Kind, list.MaxBytes = fleet.Fetched, cmp.Or(l.MaxBytes, maxFetched)
		}
		lists = append(lists, list)
	}
	return lists
}

// SharesAccounts reports whether the accounts of the console are those of the fleet.
func SharesAccounts(c *config.Config) bool {
	return c.Fleet.On() && c.Console.Addr != "" && c.Console.ShareAccounts
}

// FleetLeft is the file in the state directory that says that an admin has taken the gate out
// of the fleet.
const FleetLeft = "fleet/left"

// LeftFleet reports whether an admin has taken the gate out of the fleet.
func LeftFleet(c *config.Config) (bool, error) {
	return exists(c, FleetLeft)
}

// HasSharedAccounts reports whether the gate has shared its accounts, which are those of the
// fleet since then.
func HasSharedAccounts(c *config.Config) (bool, error) {
	return exists(c, fleet.RecordName(fleet.Accounts, fleet.AccountsList))
}

// exists reports whether there is a file in the state directory.
func exists(c *config.Config, name string) (bool, error) {
	_, err := atomicfile.In(c.State.Dir).StatFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// FleetAccept returns a function that accepts a content of a list before it is in its place.
// Now returns the configuration of the moment.
func FleetAccept(current func() *config.Config, s *store.Store) func(list string, sum [sha256.Size]byte) error {
	return func(list string, sum [sha256.Size]byte) error {
		c := current()
		i := ListIndex(c, list)
		if i < 0 {
			return fmt.Errorf("list %s: %w", list, fleet.ErrNotShared)
		}
		l := c.Lists[i]
		content, err := Opener(l).ContentSumWith([]string{l.Copy}, l.Copy, sum)
		if err != nil {
			return err
		}
		return s.AcceptContent(list, content)
	}
}
