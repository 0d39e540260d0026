package accounts

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
	"golang.org/x/text/unicode/norm"
)

// The parameters of argon2id: what OWASP's password storage cheat sheet asks for at least.
// The 64 MiB of RFC 9106's second choice would be garbage after each attempt, which the
// mail path would have to share its memory with.
var usualCost = cost{memory: 19 << 10, time: 2, threads: 1}

// cost is what a hash costs.
type cost struct {
	memory, time uint32 // KiB, and how often all of it is written
	threads      uint8
}

const (
	hashBytes = 32
	saltBytes = 16

	// maxHashMemory bounds what a damaged file can demand, in KiB.
	maxHashMemory = 256 << 10
	maxHashTime   = 16
)

const (
	minPassword = 12   // characters
	maxPassword = 4096 // bytes: at least 1,000 characters
)

// ErrPassword says why a password cannot be used. Use errors.Is.
var ErrPassword = errors.New("unusable password")

// normalPassword returns a new password in the form that is hashed.
func normalPassword(name, password string) (string, error) {
	if len(password) > maxPassword {
		return "", fmt.Errorf("%w: longer than %d bytes", ErrPassword, maxPassword)
	}
	if !utf8.ValidString(password) {
		return "", fmt.Errorf("%w: not valid UTF-8", ErrPassword)
	}
	normal := norm.NFC.String(password)
	if n := utf8.RuneCountInString(normal); n < minPassword {
		return "", errShort(n)
	}
	if strings.EqualFold(normal, name) {
		return "", fmt.Errorf("%w: it is the name; choose another", ErrPassword)
	}
	return normal, nil
}

func errShort(n int) error {
	return fmt.Errorf("%w: %d characters; use at least %d", ErrPassword, n, minPassword)
}

// passwordHash is the hash of a password with its parameters.
type passwordHash struct {
	cost
	salt, sum []byte
}

// newHash hashes a password in its normal form.
func newHash(normal string, c cost) passwordHash {
	h := passwordHash{c, make([]byte, saltBytes), nil}
	_, _ = rand.Read(h.salt) // never fails
	h.sum = h.of(normal)
	return h
}

func (h passwordHash) of(normal string) []byte {
	return argon2.IDKey([]byte(normal), h.salt, h.time, h.memory, h.threads, hashBytes)
}

// matches reports whether the hash is that of a password.
func (h passwordHash) matches(password string) bool {
	if len(password) > maxPassword {
		password = "" // no password is as long: let it cost the same
	}
	return subtle.ConstantTimeCompare(h.of(norm.NFC.String(password)), h.sum) == 1
}

// MarshalText writes the hash in the PHC string format, as other programs do.
func (h passwordHash) MarshalText() ([]byte, error) {
	b64 := base64.RawStdEncoding
	return fmt.Appendf(nil, "$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version,
		h.memory, h.time, h.threads, b64.EncodeToString(h.salt), b64.EncodeToString(h.sum)), nil
}

var errHash = errors.New("not a hash of a password as this version writes it")

// UnmarshalText parses the output of MarshalText.
func (h *passwordHash) UnmarshalText(text []byte) error {
	fields := strings.Split(string(text), "$")
	if len(fields) != 6 || fields[0] != "" || fields[1] != "argon2id" || fields[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return errHash
	}
	_, err := fmt.Sscanf(fields[3], "m=%d,t=%d,p=%d", &h.memory, &h.time, &h.threads)
	if err != nil || h.memory == 0 || h.memory > maxHashMemory || h.time == 0 || h.time > maxHashTime || h.threads == 0 {
		return errHash
	}
	var errSalt, errSum error
	h.salt, errSalt = base64.RawStdEncoding.DecodeString(fields[4])
	h.sum, errSum = base64.RawStdEncoding.DecodeString(fields[5])
	if errSalt != nil || errSum != nil || len(h.salt) < 8 || len(h.salt) > 64 || len(h.sum) != hashBytes {
		return errHash
	}
	if again, _ := h.MarshalText(); string(again) != string(text) {
		return errHash
	}
	return nil
}

// noHash returns a hash of no password. It is checked in place of that of a user who does not
// exist, so that the answer takes as long.
func noHash(c cost) *passwordHash {
	return &passwordHash{c, make([]byte, saltBytes), make([]byte, hashBytes)}
}

// hasher computes one hash at a time, so that a flood of logins cannot take the gate's
// processors and memory.
type hasher struct {
	busy    chan struct{} // holds a value while a hash is computed
	waiting atomic.Int32
}

const (
	maxWaiting = 16
	maxWait    = 5 * time.Second
)

// ErrBusy says that too many logins are being checked at once. Use errors.Is.
var ErrBusy = errors.New("too many logins at this moment: try again in a few seconds")

// enter waits for the turn of the caller, who calls leave afterwards.
func (h *hasher) enter(ctx context.Context) error {
	if h.waiting.Add(1) > maxWaiting {
		h.waiting.Add(-1)
		return ErrBusy
	}
	defer h.waiting.Add(-1)
	ctx, cancel := context.WithTimeoutCause(ctx, maxWait, ErrBusy)
	defer cancel()
	select {
	case h.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *hasher) leave() { <-h.busy }
