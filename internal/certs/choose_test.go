package certs

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// several writes certificates and keys into files, and opens them.
func several(t *testing.T, o Options, pairs ...testPair) (*Reloader, []files, <-chan struct{}) {
	t.Helper()
	var written []files
	var all []Files
	for _, p := range pairs {
		f := newFiles(t)
		f.write(t, p)
		written = append(written, f)
		all = append(all, Files{f.cert, f.key})
	}
	looked := make(chan struct{})
	o.looked, o.now, o.debounce = looked, atNoon, time.Millisecond
	r, err := Open(all, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r, written, looked
}

// rsaOnly and ecdsaOnly are cipher suites of TLS 1.2, which name the kind of the key. The
// default of TLS 1.3 leaves it to the signature algorithms, which Go's client does not let
// one choose.
var (
	rsaOnly   = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
	ecdsaOnly = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
)

// served returns the serial number of the certificate that a client gets for a name, or -1 if
// the handshake fails.
func served(t *testing.T, r *Reloader, name string, suites []uint16) int64 {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer there.Close()
		tls.Server(there, &tls.Config{GetCertificate: r.GetCertificate, Time: atNoon}).Handshake()
	}()
	c := &tls.Config{ServerName: name, InsecureSkipVerify: true, Time: atNoon}
	if suites != nil {
		c.CipherSuites, c.MaxVersion = suites, tls.VersionTLS12
	}
	client := tls.Client(here, c)
	err := client.Handshake()
	here.Close()
	<-done
	if err != nil {
		return -1
	}
	return client.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestChoice(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	serial := int64(0)
	number := func() time.Time { serial++; return time.Unix(noon.AddDate(1, 0, 0).Unix()+serial, 0) }
	locate := func(i int64) int64 { return noon.AddDate(1, 0, 0).Unix() + i }
	// Serial numbers 1 to 4 after at(0).
	both, bothRSA := newPair(t, "mx.example.com", number()), newPairOf(t, key, "mx.example.com", number())
	wild, other := newPair(t, "*.example.org", number()), newPairOf(t, key, "mail.example.net", number())
	r, _, _ := several(t, Options{}, both, bothRSA, wild, other)
	for _, c := range []struct {
		what   string
		name   string
		suites []uint16
		want   int64
	}{
		{"the name, both kinds: the first with the name", "mx.example.com", nil, 1},
		{"the same in upper case", "MX.Example.COM", nil, 1},
		{"RSA only", "mx.example.com", rsaOnly, 2},
		{"ECDSA only", "mx.example.com", ecdsaOnly, 1},
		{"a wildcard", "smtp.example.org", nil, 3},
		{"a wildcard has one label", "a.smtp.example.org", nil, 1},
		{"another name", "mail.example.net", nil, 4},
		{"no name", "", nil, 1},
		{"no name, RSA only", "", rsaOnly, 2},
		{"no name, ECDSA only", "", ecdsaOnly, 1},
		{"an unknown name", "unknown.example", nil, 1},
		{"an unknown name, RSA only", "unknown.example", rsaOnly, 2},
		{"a name that has no such certificate: the first of the kind", "smtp.example.org", rsaOnly, 2},
		{"the other way round", "mail.example.net", ecdsaOnly, 1},
	} {
		if got := served(t, r, c.name, c.suites); got != locate(c.want) {
			t.Errorf("%s: certificate %d, want %d", c.what, got-locate(0), c.want)
		}
	}

	// A single one is for all, as a client that insists on the other kind finds out.
	r, _, _ = several(t, Options{}, both)
	for _, name := range []string{"mx.example.com", "", "unknown.example"} {
		if got := served(t, r, name, nil); got != locate(1) {
			t.Errorf("%q got certificate %d of one", name, got-locate(0))
		}
	}
	if got := served(t, r, "mx.example.com", rsaOnly); got != -1 {
		t.Errorf("an ECDSA certificate, number %d, for a client that knows RSA", got-locate(0))
	}
}

// TestSeveral loads each pair by itself: one that becomes invalid stays as it was, and the
// others follow their files.
func TestSeveral(t *testing.T) {
	var log logBuffer
	testPair, two := newPair(t, oldName, nextYear), newPair(t, "two.example.com", noon.Add(time.Hour))
	r, f, looked := several(t, Options{PollInterval: time.Millisecond, Logger: log.logger()}, testPair, two)
	if all := r.Certificates(); len(all) != 2 || all[0].File != f[0].cert || all[0].Expiry != "" || all[1].Names[0] != "two.example.com" || !strings.Contains(all[1].Expiry, "expires at") {
		t.Errorf("%+v", all)
	}
	if lines := log.lines("WARN"); len(lines) != 1 || !strings.Contains(lines[0], "expires within 7 days") || !strings.Contains(lines[0], "cert="+f[1].cert) {
		t.Errorf("warned %q", lines)
	}
	replace(t, f[1].cert, "nothing\n")
	f[0].write(t, newPair(t, newName, nextYear.Add(time.Hour)))
	await(t, r, looked, newName)
	for range 4 {
		<-looked
	}
	if got := served(t, r, "two.example.com", nil); got != noon.Add(time.Hour).Unix() {
		t.Errorf("the last good certificate did not stay: number %d", got)
	}
	// The other may have been read between its certificate and its key: that is its own warning.
	if lines := log.lines("certificate not loaded, the old one stays\" cert=" + f[1].cert); len(lines) != 1 {
		t.Errorf("warned %q", lines)
	}
}

// TestSeveralErrors: an error says which of several it is about.
func TestSeveralErrors(t *testing.T) {
	good, other := newPair(t, oldName, nextYear), newPair(t, newName, nextYear)
	a, b := newFiles(t), newFiles(t)
	a.write(t, good)
	b.write(t, other)
	for _, c := range []struct {
		files []Files
		want  string
	}{
		{[]Files{{a.cert, a.key}, {b.cert, a.key}}, "certificate 2 of 2: certificate " + b.cert + " and key " + a.key + ": private key does not match"},
		{[]Files{{filepath.Join(t.TempDir(), "none"), a.key}, {b.cert, b.key}}, "certificate 1 of 2: open "},
		{[]Files{{a.cert, b.key}}, "certificate " + a.cert + " and key "},
	} {
		if _, err := Open(c.files, Options{}); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	waitGone(t)
}
