package certs

import (
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
)

var discard = slog.New(slog.DiscardHandler)

// The errors of Open name the file, what is wrong, and what to do.
func TestOpenErrors(t *testing.T) {
	good, other := newPair(t, oldName, nextYear), newPair(t, newName, nextYear)
	passphrase := string(pem.EncodeToMemory(&pem.Block{
		Type: "EC PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00"}, Bytes: []byte("secret"),
	}))
	cases := []struct {
		name      string
		cert, key string // "-": no file
		want      []string
	}{
		{"no certificate file", "-", good.key, []string{"cert.pem", "no such file", "correct the path"}},
		{"no key file", good.cert, "-", []string{"key.pem", "no such file", "correct the path"}},
		{"text for a certificate", "certificate\n", good.key, []string{"cert.pem has no certificate", "BEGIN CERTIFICATE"}},
		{"text for a key", good.cert, "key\n", []string{"key.pem has no private key", "BEGIN PRIVATE KEY"}},
		{"swapped", good.key, good.cert, []string{"cert.pem has no certificate but a PRIVATE KEY"}},
		{"the certificate twice", good.cert, good.cert, []string{"key.pem has no private key but a CERTIFICATE"}},
		{"other key", good.cert, other.key, []string{"cert.pem", "key.pem", "private key does not match public key", "first certificate in its file"}},
		{"wrong order", other.cert + good.cert, good.key, []string{"does not match", "first certificate in its file"}},
		{"garbage in a certificate", block("CERTIFICATE", []byte("garbage")), good.key, []string{"cert.pem: certificate number 1"}},
		{"garbage in a second one", good.cert + block("CERTIFICATE", []byte("garbage")), good.key, []string{"cert.pem: certificate number 2"}},
		{"garbage in a key", good.cert, block("PRIVATE KEY", []byte("garbage")), []string{"key.pem", "failed to parse private key"}},
		{"a passphrase", good.cert, block("ENCRYPTED PRIVATE KEY", []byte("secret")), []string{"key.pem", "passphrase", "openssl pkey"}},
		{"a passphrase, the old way", good.cert, passphrase, []string{"key.pem", "passphrase", "openssl pkey"}},
		{"too long", good.cert + strings.Repeat("#\n", maxFile/2), good.key, []string{"cert.pem", "more than 1048576 bytes"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFiles(t)
			for path, text := range map[string]string{f.cert: c.cert, f.key: c.key} {
				if text != "-" {
					write(t, path, text)
				}
			}
			_, err := Open([]Files{{f.cert, f.key}}, Options{})
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
		})
	}
}

func TestOpenTogether(t *testing.T) {
	p := newPair(t, oldName, nextYear)
	f := newFiles(t)
	write(t, f.cert, "a comment\n"+p.key+p.cert+newPair(t, newName, nextYear).cert)
	f.key = f.cert
	r, _ := f.open(t, Options{})
	if c, _ := r.GetCertificate(nil); len(c.Certificate) != 2 {
		t.Errorf("%d certificates", len(c.Certificate))
	}
}

func TestNotRegular(t *testing.T) {
	f := newFiles(t)
	f.write(t, newPair(t, oldName, nextYear))
	if _, err := Open([]Files{{t.TempDir(), f.key}}, Options{}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

func TestLoadPool(t *testing.T) {
	a, b := newPair(t, oldName, nextYear), newPair(t, newName, nextYear)
	path := filepath.Join(t.TempDir(), "ca.pem")
	write(t, path, a.cert+"# the second\n"+b.cert)
	pool, err := LoadPool(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []testPair{a, b, newPair(t, newName, nextYear)} {
		c, err := parseCertificates("", []byte(p.cert))
		if err != nil {
			t.Fatal(err)
		}
		_, err = c[0].Verify(x509.VerifyOptions{Roots: pool, CurrentTime: noon})
		if trusted := p == a || p == b; trusted != (err == nil) {
			t.Errorf("trusted: %v, and %v", trusted, err)
		}
	}
	for text, want := range map[string]string{
		"":    "has no certificate",
		a.key: "has no certificate but a PRIVATE KEY",
		a.cert + block("CERTIFICATE", []byte("garbage")): "certificate number 2",
	} {
		if _, err := LoadPool(write(t, path, text)); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := LoadPool(path + ".missing"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}
