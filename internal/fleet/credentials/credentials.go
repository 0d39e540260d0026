// Package credentials reads the file that says who a gate is in its fleet.
package credentials

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nkeys"
)

// maxFile bounds the file, in bytes.
const maxFile = 64 << 10

// Credentials are one of three.
type Credentials struct {
	Token string // a line that all share
	Seed  string // of an nkey, "SU..."
	User  bool   // the file is a .creds file of NATS: a JWT and its seed
}

// Read reads a file, which other users of the machine must not be able to read.
func Read(path string) (Credentials, error) {
	text, err := readSecret(path)
	if err != nil {
		return Credentials{}, err
	}
	line := string(bytes.TrimSpace(text))
	switch {
	case bytes.Contains(text, []byte("NATS USER JWT")):
		return Credentials{User: true}, nil
	case strings.HasPrefix(line, "SU") && isSeed(line):
		return Credentials{Seed: line}, nil
	case line == "" || strings.ContainsAny(line, " \t\r\n"):
		return Credentials{}, fmt.Errorf("%s has no credentials: it must be a .creds file of NATS, the seed of an nkey, or one line with a token", path)
	}
	return Credentials{Token: line}, nil
}

func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return nil, fmt.Errorf("%s is not a file of credentials", path)
	case info.Mode().Perm()&0o007 != 0:
		return nil, fmt.Errorf("%s can be read or written by all users (mode %v): run chmod 600 on it, and replace the credentials", path, info.Mode())
	}
	return os.ReadFile(path)
}

func isSeed(line string) bool {
	kp, err := nkeys.FromSeed([]byte(line))
	if err == nil {
		kp.Wipe()
	}
	return err == nil
}

// ReadOnly returns the credentials of a gate of that name that only reads, in the fleet whose
// members have c. They are made of c, so that a server needs no other file, and nobody can make c of
// them, or those of another name. Credentials of a NATS user have none.
func (c Credentials) ReadOnly(name string) (Credentials, error) {
	what := "spamgate fleet: read only: " + name
	switch {
	case c.Token != "":
		return Credentials{Token: hex.EncodeToString(derived([]byte(c.Token), what))}, nil
	case c.Seed != "":
		_, raw, err := nkeys.DecodeSeed([]byte(c.Seed))
		if err != nil {
			return Credentials{}, err
		}
		kp, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, derived(raw, what))
		if err != nil {
			return Credentials{}, err
		}
		seed, err := kp.Seed()
		return Credentials{Seed: string(seed)}, err
	}
	return Credentials{}, fmt.Errorf("the rights of a NATS user are in its JWT, which the NATS account's owner signs")
}

// RouteKey returns the key by which the servers of the fleet know each other. It is not what
// clients send.
func (c Credentials) RouteKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(derived([]byte(c.Token+c.Seed), "spamgate fleet: routes"))
}

func derived(secret []byte, what string) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(what))
	return h.Sum(nil)
}

// String hides what is secret, in logs too.
func (c Credentials) String() string {
	switch {
	case c.Token != "":
		return "a token"
	case c.Seed != "":
		return "an nkey"
	case c.User:
		return "a NATS user"
	}
	return "no credentials"
}
