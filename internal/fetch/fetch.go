// Package fetch keeps copies of lists that come from URLs.
//
// A fetch ends in one of three ways: the copy on disk is replaced as a whole,
// it is what the server has already, or something is wrong, and then the copy
// stays byte for byte what it was. What a list's content is worth is for its
// reader to judge; here is judged whether it came as it was sent: over https,
// whole, not larger than allowed, no web page in place of a list, and signed
// where a key is given.
//
// The bytes are kept as the server sent them. The request asks for them without
// a content encoding; a server that packs them with gzip or zstd all the same,
// or calls a .gz file's own packing an encoding, gets its bytes stored packed,
// as the readers of lists unpack both. A signature is over the bytes that are
// stored.
//
// The length that a server gives is checked, as far as that goes: what comes
// behind it in HTTP/1.1 is not part of the body, so a length that is too small
// makes a shorter list. Where there is no length, https shows whether the body
// was cut; over plain http that can't be seen in a body that ends with its
// connection. A signature shows both.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options of a [Fetcher]. The zero value works.
type Options struct {
	// Logger takes a line for each list that was fetched and each failure; nil:
	// none.
	Logger *slog.Logger

	// UserAgent is what servers are told; empty means "spamgate".
	UserAgent string

	// Progress, if not nil, is told how much of a list is there while it is
	// fetched. The total is negative where the server does not say it. It is
	// called by many goroutines at once where several lists are fetched.
	Progress func(name string, done, total int64)

	// RootCAs is who may vouch for servers where a source says nothing else; nil:
	// whom the system trusts.
	RootCAs *x509.CertPool
}

// Fetcher fetches lists: each when asked with [Fetcher.Fetch], or all of them
// again and again with [Fetcher.Update]. It is safe for concurrent use.
type Fetcher struct {
	log       *slog.Logger
	userAgent string
	progress  func(name string, done, total int64)
	transport *http.Transport

	updating sync.Mutex // held by Update and Close

	mu    sync.Mutex
	loops map[string]*loop // by the name of the source
}

// New makes a Fetcher. Proxies are taken from the environment as by
// [http.ProxyFromEnvironment].
func New(o Options) *Fetcher {
	f := &Fetcher{log: o.Logger, userAgent: o.UserAgent, progress: o.Progress, loops: map[string]*loop{}}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.userAgent == "" {
		f.userAgent = "spamgate"
	}
	if f.progress == nil {
		f.progress = func(string, int64, int64) {}
	}
	f.transport = &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: patience / 2}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		DisableKeepAlives:      true, // the next request is hours away
		MaxResponseHeaderBytes: 64 << 10,
	}
	return f
}

// Status is how a source is doing.
type Status struct {
	// LastTry is when it was last asked for, and LastGood when the server last
	// had or confirmed what the copy holds. Zero: not yet.
	LastTry, LastGood time.Time

	// NextTry is when it will be asked for again; zero where nothing does so.
	NextTry time.Time

	// Err is what was wrong with the last try; nil: nothing.
	Err error

	// Failures counts the tries that failed since the last good one.
	Failures int

	// NotModified says that the last try found the copy up to date.
	NotModified bool

	// Replaced says that the copy holds another version than the server, since
	// somebody has put it there: see [ReplaceCopy].
	Replaced bool

	// ETag and LastModified are the server's names for the copy's version, and
	// Bytes is its size.
	ETag, LastModified string
	Bytes              int64
}

// Fetch asks for a source once, and replaces its copy where there is another
// version. The error is also in the Status.
func (f *Fetcher) Fetch(ctx context.Context, s Source) (Status, error) {
	s = s.withDefaults()
	status := Status{LastTry: time.Now()}
	now, notModified, err := f.fetch(ctx, s)
	status.NotModified, status.Replaced = notModified, now.Instead != ""
	status.ETag, status.LastModified = now.ETag, now.LastModified
	status.LastGood, status.Bytes = now.Checked, now.Bytes
	if err != nil {
		status.Err = &SourceError{Name: s.Name, URL: s.ShownURL(), Err: err}
		status.Failures = 1
	}
	return status, status.Err
}
