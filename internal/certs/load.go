package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// maxFile bounds what is read of a file. The bundle of all authorities that a
// system trusts has a quarter of that.
const maxFile = 1 << 20

// readFile reads a file, whose error says what to do.
func readFile(path string) ([]byte, error) {
	// Opening must not wait for the other end, if the path is a pipe.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: let the user that the gate runs as read the file, and search the directories above", err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: correct the path, or put the file there", err)
	case err != nil:
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: give a PEM file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s has more than %d bytes: give a PEM file", path, maxFile)
	}
	return data, nil
}

// KeyError is an error about the file with the private key. All others of Open are
// about the certificate's.
type KeyError struct{ Err error }

// Error returns the text of Err.
func (e *KeyError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *KeyError) Unwrap() error { return e.Err }

// readPair reads both files. Seen tells one state of them from another: it is
// made of all that they hold, or of the error. Attributes such as the time of
// modification would be cheaper and say less; the files are small.
func readPair(certFile, keyFile string) (cert, key []byte, seen string, err error) {
	cert, err = readFile(certFile)
	if err == nil {
		if key, err = readFile(keyFile); err != nil {
			err = &KeyError{err}
		}
	}
	if err != nil {
		return nil, nil, err.Error(), err
	}
	sums := [2][sha256.Size]byte{sha256.Sum256(cert), sha256.Sum256(key)}
	return cert, key, fmt.Sprintf("%x", sums), nil
}

// parsePair makes a certificate of what the files hold.
func parsePair(certFile, keyFile string, cert, key []byte) (*tls.Certificate, error) {
	if _, err := parseCertificates(certFile, cert); err != nil {
		return nil, err
	}
	if err := checkKey(keyFile, key); err != nil {
		return nil, &KeyError{err}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, &KeyError{fmt.Errorf("certificate %s and key %s: %s: give the key of the certificate that is the first in its file",
			certFile, keyFile, strings.TrimPrefix(err.Error(), "tls: "))}
	}
	return &pair, nil
}

// parseCertificates parses every certificate of a PEM file; there is one at
// least.
func parseCertificates(path string, data []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	other := ""
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			other = block.Type
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: certificate number %d: %s: get the file anew", path, len(certs)+1, strings.TrimPrefix(err.Error(), "x509: "))
		}
		certs = append(certs, c)
	}
	switch {
	case certs != nil:
		return certs, nil
	case other != "":
		return nil, fmt.Errorf("%s has no certificate but a %s: give the file with the certificate", path, other)
	default:
		return nil, fmt.Errorf("%s has no certificate: give a PEM file, with a line -----BEGIN CERTIFICATE-----", path)
	}
}

// checkKey says what is wrong with a key file in words that crypto/tls has not.
func checkKey(path string, data []byte) error {
	other := ""
	for rest := data; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		_, legacy := block.Headers["DEK-Info"] // RFC 1421
		switch {
		case legacy || block.Type == "ENCRYPTED PRIVATE KEY":
			return fmt.Errorf("%s has a key with a passphrase, and nobody is there to type it: take it off with openssl pkey -in %s -out NEWFILE", path, path)
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return nil
		}
		other = block.Type
	}
	if other != "" {
		return fmt.Errorf("%s has no private key but a %s: give the file with the key", path, other)
	}
	return fmt.Errorf("%s has no private key: give a PEM file, with a line -----BEGIN PRIVATE KEY-----", path)
}

// names are those that a certificate is for.
func names(c *x509.Certificate) []string {
	names := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if names == nil && c.Subject.CommonName != "" {
		names = []string{c.Subject.CommonName}
	}
	return names
}

// LoadPool reads the authorities of a PEM file: every certificate in it is
// trusted.
func LoadPool(path string) (*x509.CertPool, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	certs, err := parseCertificates(path, data)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, c := range certs {
		pool.AddCert(c)
	}
	return pool, nil
}
