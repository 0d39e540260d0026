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

// maxFile bounds what is read of a file. A system's bundle of all trusted authorities
// has a quarter of that.
const maxFile = 1 << 20

// readFile reads a file. Its errors say what to do.
func readFile(path string) ([]byte, error) {
	// Opening a named pipe must not wait for its other end.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%w: let the gate's user read the file, and search the directories that lead to it", err)
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

// PairError is an error of Open.
type PairError struct {
	Index, Of int // of the pair, from 0; and how many there are
	Err       error
}

// Error returns the text of Err, and which pair it is about if there are several.
func (e *PairError) Error() string {
	if e.Of == 1 {
		return e.Err.Error()
	}
	return fmt.Sprintf("certificate %d of %d: %v", e.Index+1, e.Of, e.Err)
}

// Unwrap returns Err.
func (e *PairError) Unwrap() error { return e.Err }

// KeyError is an error about the file with the private key. All other errors of a pair
// are about the file with the certificate.
type KeyError struct{ Err error }

// Error returns the text of Err.
func (e *KeyError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *KeyError) Unwrap() error { return e.Err }

// readPair reads both files. Seen identifies their state: it is a hash of their
// contents, or the error. The modification time would be cheaper, but less reliable;
// the files are small.
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

// parsePair makes a certificate of the contents of the files.
func parsePair(certFile, keyFile string, cert, key []byte) (*tls.Certificate, error) {
	if _, err := parseCertificates(certFile, cert); err != nil {
		return nil, err
	}
	if err := checkKey(keyFile, key); err != nil {
		return nil, &KeyError{err}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, &KeyError{fmt.Errorf("certificate %s and key %s: %s: give the key of the first certificate in its file",
			certFile, keyFile, strings.TrimPrefix(err.Error(), "tls: "))}
	}
	return &pair, nil
}

// parseCertificates returns all certificates of a PEM file, at least one.
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
			return nil, fmt.Errorf("%s: certificate number %d: %s: get the file again", path, len(certs)+1, strings.TrimPrefix(err.Error(), "x509: "))
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

// checkKey explains common mistakes in key files better than crypto/tls.
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
			return fmt.Errorf("%s has a key with a passphrase, which nobody can type: remove it with openssl pkey -in %s -out NEWFILE", path, path)
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

// names returns the host names and addresses of a certificate.
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

// LoadPool returns a pool of all certificates of a PEM file, as trusted authorities.
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
