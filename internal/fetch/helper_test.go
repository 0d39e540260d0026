package fetch

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"aead.dev/minisign"
)

const (
	listText  = "example.com # one\nexample.net # two\n"
	otherText = "example.org # three\n"
)

// switchable is a handler that can be changed between requests.
type switchable struct {
	mu      sync.Mutex
	handler http.HandlerFunc
	seen    []http.Header
}

func (s *switchable) set(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = h
}

// requests are the header fields of all requests so far.
func (s *switchable) requests() []http.Header {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func (s *switchable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	h := s.handler
	s.seen = append(s.seen, r.Header.Clone())
	s.mu.Unlock()
	h(w, r)
}

// fixture is a server with TLS, a fetcher that trusts it, and a source.
type fixture struct {
	server  *httptest.Server
	handler switchable
	fetcher *Fetcher
	source  Source
	log     logBuffer
}

// newFixture serves on loopback. Before the server starts, change may alter it.
func newFixture(t *testing.T, h http.HandlerFunc, change ...func(*httptest.Server)) *fixture {
	x := &fixture{}
	x.handler.set(h)
	x.server = httptest.NewUnstartedServer(&x.handler)
	x.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	for _, c := range change {
		c(x.server)
	}
	x.server.StartTLS()
	x.start(t)
	return x
}

// newBubbleFixture serves on connections in memory, where the time of a synctest
// bubble can pass. They are without TLS, whose end takes time of its own there.
func newBubbleFixture(t *testing.T, h http.HandlerFunc) *fixture {
	x := &fixture{}
	x.handler.set(h)
	pipes := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	x.server = &httptest.Server{Listener: pipes, Config: &http.Server{Handler: &x.handler}}
	x.server.Start()
	x.start(t)
	x.source.AllowHTTP = true
	x.fetcher.transport.DialContext = pipes.dial
	return x
}

// start makes the fetcher and the source for a server that runs.
func (x *fixture) start(t *testing.T) {
	t.Cleanup(x.server.Close)
	roots := x509.NewCertPool()
	if certificate := x.server.Certificate(); certificate != nil {
		roots.AddCert(certificate)
	}
	x.fetcher = New(Options{RootCAs: roots, Logger: slog.New(slog.NewTextHandler(&x.log, nil))})
	t.Cleanup(x.fetcher.Close)
	x.source = Source{Name: "ads", URL: x.server.URL + "/list.txt", Copy: filepath.Join(t.TempDir(), "lists", "ads", "copy")}
}

// pipeListener is a listener that dial connects to.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, errors.New("refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

// fetch wants success.
func (x *fixture) fetch(t *testing.T) Status {
	t.Helper()
	status, err := x.fetcher.Fetch(t.Context(), x.source)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func (x *fixture) wantCopy(t *testing.T, want string) {
	t.Helper()
	if got, err := os.ReadFile(x.source.Copy); err != nil || string(got) != want {
		t.Errorf("copy: %q, %v; want %q", got, err, want)
	}
}

// files is the whole directory of the copy: names, modes and contents.
func (x *fixture) files(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Dir(x.source.Copy), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		found[filepath.Base(path)] = info.Mode().String() + " " + info.ModTime().String() + " " + string(text)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return found
}

// send answers with a text, and headers in pairs.
func send(text string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Date", "Sat, 01 Aug 2026 12:00:00 GMT") // after each Last-Modified of the tests
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		io.WriteString(w, text)
	}
}

// answer answers with a status.
func answer(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

// signed answers with a text and, at its signature's place, with the signature.
func signed(text string, signature []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".minisig") {
			w.Write(signature)
			return
		}
		send(text)(w, r)
	}
}

func newKey(t *testing.T) (minisign.PublicKey, minisign.PrivateKey) {
	t.Helper()
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return public, private
}

// sign makes a signature of the kind that minisign makes now, over a hash, for the file of
// a fixture's source.
func sign(private minisign.PrivateKey, text string) []byte {
	return signAs(private, text, comment("list.txt", time.Now().Unix()))
}

// comment is the trusted comment that minisign writes.
func comment(file string, offset int64) string {
	return fmt.Sprintf("timestamp:%d\tfile:%s\thashed", offset, file)
}

// signAs makes a signature with a trusted comment.
func signAs(private minisign.PrivateKey, text, comment string) []byte {
	r := minisign.NewReader(strings.NewReader(text))
	if _, err := io.Copy(io.Discard, r); err != nil {
		panic(err)
	}
	return r.SignWithComments(private, comment, "signature from minisign secret key")
}

// logBuffer takes a log from several goroutines.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// count is the number of lines that hold a text.
func (b *logBuffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.text.String(), text)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
