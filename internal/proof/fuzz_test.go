package proof

import (
	"context"
	"crypto/ed25519"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// plainly verifies a whole message with the library alone, and returns the domains of the
// signatures that are valid among the first ones.
func (w *world) plainly(message string) (valid []string) {
	keys := &questions{resolver: w.proofs.resolver, left: 1000}
	found, _ := dkim.VerifyWithOptions(strings.NewReader(message), &dkim.VerifyOptions{
		MaxVerifications: verdict.MaxSignatures,
		LookupTXT: func(name string) ([]string, error) {
			ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
			defer cancel()
			return keys.LookupTXT(ctx, name)
		},
	})
	for _, v := range found {
		if domain, err := sender.NormalizeDomain(v.Domain); v.Err == nil && err == nil {
			valid = append(valid, domain)
		}
	}
	return valid
}

// writePieces writes a message in pieces of a size.
func writePieces(v io.Writer, message string, size int) {
	for piece := range slices.Chunk([]byte(message), size) {
		v.Write(piece)
	}
}

// FuzzVerify compares what comes of a message that passes in pieces with what the library
// says of the whole. A message is a signed one with a part replaced.
func FuzzVerify(f *testing.F) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	simple := func(o *dkim.SignOptions) { o.HeaderCanonicalization, o.BodyCanonicalization = "simple", "simple" }
	messages := []string{
		signed(f, letter, "partner.example", key),
		signed(f, letter, "partner.example", key, simple),
		signed(f, signed(f, letter, "partner.example", key, simple), "other.example", key),
	}
	for _, message := range messages {
		f.Add(message, 1)
		f.Add(message+"\r\n\r\n", 7)
		f.Add(message+" \r\n", 7)
		f.Add("X: y\r\n z\r\n"+message, 100)
		f.Add(strings.Replace(message, "Subject: ", "SUBJECT :   ", 1), 100)
		f.Add(strings.Replace(message, "From: ", "From:\r\n ", 1), 3)
		f.Add(strings.Replace(message, "DKIM-Signature", "dkim-signature", 1), 1000)
		f.Add(strings.Replace(message, "\r\n\r\n", "\r\n \r\n\r\n", 1), 1000)
		f.Add(strings.Replace(message, "\r\n", "\r\nDKIM-Signature: \r\n", 1), 1000)
	}
	f.Fuzz(func(t *testing.T, message string, size int) {
		if len(message) > 1<<16 {
			return
		}
		w := newWorld(t)
		for _, domain := range []string{"partner.example", "other.example"} {
			w.publish(domain, key)
		}
		v := w.proofs.Verify(t.Context(), []string{"partner.example", "other.example"})
		writePieces(v, message, max(size, 1))
		plain := strings.Join(w.plainly(message), " ")
		for _, s := range v.Finish() {
			switch {
			case s.State == verdict.ProofPending || s.State == verdict.ProofUnknown:
				t.Errorf("%+v", s)
			case s.State == verdict.Proven && !strings.Contains(plain, s.Domain):
				t.Errorf("%s is proven, and the library says %q", s.Domain, plain)
			}
		}
	})
}

// TestVerifyAgrees: no message of the fuzzer's seeds with a valid signature is lost.
func TestVerifyAgrees(t *testing.T) {
	key := ed25519Key()
	message := signed(t, signed(t, letter, "partner.example", key), "other.example", key)
	for size := 1; size < 2*len(message); size += 97 {
		w := newWorld(t)
		w.publish("partner.example", key)
		w.publish("other.example", key)
		v := w.proofs.Verify(t.Context(), []string{"partner.example", "other.example"})
		writePieces(v, message, size)
		var valid []string
		for _, s := range v.Finish() {
			if s.State == verdict.Proven {
				valid = append(valid, s.Domain)
			}
		}
		if plain := w.plainly(message); strings.Join(valid, " ") != strings.Join(plain, " ") || len(plain) != 2 {
			t.Errorf("in pieces of %d: %q, the library says %q", size, valid, plain)
		}
	}
}
