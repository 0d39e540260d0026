package proof

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/text"
	"spamgate/smtpfilter/header"
)

// verify verifies one signature of a message with a header and a body. What panics because
// of a message is a failure of its signature, and not of the gate: so each signature has a
// call of the library, which starts no goroutine for a single one.
func verify(k *keys, head []byte, f header.SignatureField, body io.Reader) (state verdict.ProofState, why string) {
	defer func() {
		if recover() != nil {
			state, why = verdict.NotProven, "it cannot be verified"
		}
	}()
	// The library verifies the first signature. Which of several others stand above it
	// does not matter: a signature covers fields from the bottom up.
	message := io.MultiReader(bytes.NewReader(head[f.Start:f.End]), bytes.NewReader(head[:f.Start]),
		bytes.NewReader(head[f.End:]), body)
	found, err := dkim.VerifyWithOptions(message, &dkim.VerifyOptions{
		MaxVerifications: 1,
		LookupTXT:        func(name string) ([]string, error) { return k.lookup(name, f.Domain) },
	})
	if err != nil && !errors.Is(err, dkim.ErrTooManySignatures) || len(found) != 1 {
		return verdict.NotProven, "the message cannot be read"
	}
	err = found[0].Err
	domain, _ := sender.NormalizeDomain(found[0].Domain)
	switch {
	case err == nil && domain == f.Domain:
		return verdict.Proven, ""
	case err == nil:
		return verdict.NotProven, "malformed d="
	case dkim.IsTempFail(err):
		return verdict.ProofUnknown, words(err)
	}
	return verdict.NotProven, words(err)
}

// maxWhy is the longest reason, in bytes. Some have a part of the signature.
const maxWhy = 200

// words returns an error of the library in words.
func words(err error) string {
	why := text.Printable(strings.TrimPrefix(err.Error(), "dkim: "))
	return strings.ToValidUTF8(why[:min(len(why), maxWhy)], "")
}

var (
	errTesting  = errors.New("its owner only tests it (t=y)")
	errSelector = errors.New("a malformed selector or domain")
)

// keys are the keys of a message's signatures.
type keys struct {
	questions
	ctx   context.Context
	until time.Time
}

// lookup returns the texts of a key's name, SELECTOR._domainkey.DOMAIN, which must be that of
// a domain. A key that is being tested counts as none (RFC 6376, section 3.6.1).
func (k *keys) lookup(name, domain string) ([]string, error) {
	const between = "._domainkey."
	pos := strings.LastIndex(name, between)
	if pos < 0 {
		return nil, errSelector
	}
	if d, err := sender.NormalizeDomain(name[pos+len(between):]); err != nil || d != domain {
		return nil, errSelector
	}
	ctx, cancel := context.WithDeadline(k.ctx, k.until)
	defer cancel()
	texts, err := k.LookupTXT(ctx, name[:pos]+between+domain)
	if err != nil {
		return nil, keyError(err)
	}
	for _, t := range texts {
		if isTesting(t) {
			return nil, errTesting
		}
	}
	return texts, nil
}

// unavailable is a temporary error. It implements net.Error, by which the library knows it.
type unavailable struct{ error }

func (unavailable) Timeout() bool   { return true }
func (unavailable) Temporary() bool { return true }

// keyError returns an error of a question for the library, without the name.
func keyError(err error) error {
	var failure *net.DNSError
	why := errors.New(reason(err))
	if errors.As(err, &failure) && failure.IsTemporary {
		return unavailable{why}
	}
	return why
}

// isTesting reports whether a key has the flag y.
func isTesting(key string) bool {
	for tag := range strings.SplitSeq(key, ";") {
		name, value, _ := strings.Cut(tag, "=")
		if strings.TrimSpace(name) != "t" {
			continue
		}
		for flag := range strings.SplitSeq(value, ":") {
			if strings.TrimSpace(flag) == "y" {
				return true
			}
		}
	}
	return false
}
