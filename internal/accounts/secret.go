package accounts

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"
)

// A secret is a cookie or, after tokenPrefix, a token: 160 random bits. That many cannot be
// guessed, so a fast hash of them is enough, and comparing hashes tells nothing by its time.
const (
	tokenPrefix  = "sgt_" // finds tokens in files where they should not be
	secretLength = 32
	digestBytes  = sha256.Size
)

var secretEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func newSecret() string {
	secret := make([]byte, secretEncoding.DecodedLen(secretLength))
	_, _ = rand.Read(secret) // never fails
	return secretEncoding.EncodeToString(secret)
}

// digest returns the hash of a secret as the files have it, and whether it has the form of one.
func digest(secret string) (sum string, ok bool) {
	if len(secret) != secretLength || strings.Trim(secret, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return "", false
	}
	return sumOf(secret), true
}

func sumOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// digestOfToken is digest for a token.
func digestOfToken(token string) (sum string, ok bool) {
	secret, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok {
		return "", false
	}
	return digest(secret)
}
