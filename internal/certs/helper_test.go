package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// patient bounds waits. Only a failing test takes so long.
const patient = 20 * time.Second

// noon is the time in tests.
var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func atNoon() time.Time { return noon }

// testPair is a certificate and its key as PEM.
type testPair struct{ cert, key string }

// newPair makes a self-signed certificate for a name, and its key.
func newPair(tb testing.TB, name string, notAfter time.Time) testPair {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return newPairOf(tb, key, name, notAfter)
}

// newPairOf is newPair for a key.
func newPairOf(tb testing.TB, key crypto.Signer, name string, notAfter time.Time) testPair {
	tb.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(notAfter.Unix()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    notAfter.AddDate(-2, 0, 0),
		NotAfter:     notAfter,
		DNSNames:     []string{name},
		IPAddresses:  []net.IP{net.IPv4(192, 0, 2, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return testPair{block("CERTIFICATE", der), block("PRIVATE KEY", keyDER)}
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// files are the paths of a certificate and its key.
type files struct{ cert, key string }

func newFiles(tb testing.TB) files {
	dir := tb.TempDir()
	return files{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
}

func (f files) write(tb testing.TB, p testPair) {
	tb.Helper()
	write(tb, f.cert, p.cert)
	write(tb, f.key, p.key)
}

func write(tb testing.TB, path, text string) string {
	tb.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// replace is write in one step: nobody sees an empty file.
func replace(tb testing.TB, path, text string) {
	tb.Helper()
	if err := os.Rename(write(tb, path+".new", text), path); err != nil {
		tb.Fatal(err)
	}
}

// open opens the files, and returns a channel with a value after each check.
func (f files) open(tb testing.TB, o Options) (*Reloader, <-chan struct{}) {
	tb.Helper()
	looked := make(chan struct{})
	o.looked = looked
	if o.now == nil {
		o.now = atNoon
	}
	o.debounce = time.Millisecond
	r, err := Open([]Files{{f.cert, f.key}}, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r, looked
}

// await waits for a certificate for a name.
func await(tb testing.TB, r *Reloader, looked <-chan struct{}, name string) {
	tb.Helper()
	deadline := time.After(patient)
	for r.Certificates()[0].Names[0] != name {
		select {
		case <-looked:
		case <-deadline:
			tb.Fatalf("the certificate is still for %v, not for %s", r.Certificates()[0].Names, name)
		}
	}
}

// logBuffer collects a log.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// lines returns the lines that contain a text.
func (b *logBuffer) lines(with string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []string
	for line := range strings.Lines(b.text.String()) {
		if strings.Contains(line, with) {
			lines = append(lines, line)
		}
	}
	return lines
}

func (b *logBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
