// Package fetch keeps copies of lists that come from URLs.
//
// A fetch ends in one of three ways: it replaces the whole copy on disk, the copy is up
// to date, or something is wrong and the copy stays as it was. This package checks the
// transport: https, complete, not larger than allowed, not a web page, and signed if
// there is a key. The reader of the list checks its content.
//
// The request asks for the content encoding zstd, and the bytes are stored unpacked. If a
// server packs them with gzip unasked, or declares the packing of a .gz or .zst file as an
// encoding, they are stored packed, since the readers of lists unpack both. A signature
// covers the stored bytes.
//
// The server's length is checked, but one that is too small makes a shorter list, since
// bytes after it do not belong to the body in HTTP/1.1. If a body ends with its connection,
// nothing shows whether it is whole: the server's identifiers of such a version are not
// used, so that the next fetch transfers it again, and what looks cut off is refused. A
// signature detects both.
package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Options of a [Fetcher]. The zero value works.
type Options struct {
	// Logger gets a line for each list that was fetched and each failure; nil means
	// no log.
	Logger *slog.Logger

	// UserAgent is sent to servers; empty means "spamgate".
	UserAgent string

	// Progress, if not nil, is called with the number of bytes that were received.
	// The total is negative if the server does not send it. Fetches of several lists
	// call it at the same time.
	Progress func(name string, done, total int64)

	// RootCAs are the authorities for servers of sources without their own; nil means
	// those of the system.
	RootCAs *x509.CertPool
}

// Fetcher fetches lists: one with [Fetcher.Fetch], or all of them regularly with
// [Fetcher.Update]. It is safe for concurrent use.
type Fetcher struct {
	log       *slog.Logger
	userAgent string
	progress  func(name string, done, total int64)
	transport *http.Transport

	// Tests replace these.
	dialer net.Dialer
	proxy  func(*http.Request) (*url.URL, error)
	zoneOf func(host string) zone
	now    func() time.Time

	updating sync.Mutex // held by Update and Close

	mu    sync.Mutex
	loops map[string]*loop // by the name of the source
}

// New returns a Fetcher. It uses the proxies of [http.ProxyFromEnvironment].
func New(o Options) *Fetcher {
	f := &Fetcher{
		log: o.Logger, userAgent: o.UserAgent, progress: o.Progress, loops: map[string]*loop{},
		dialer: net.Dialer{Timeout: stallTimeout / 2}, proxy: http.ProxyFromEnvironment, zoneOf: zoneOf, now: time.Now,
	}
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
		Proxy:                  f.proxyFor,
		DialContext:            f.dial,
		TLSClientConfig:        &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		DisableKeepAlives:      true, // the next request is hours away
		MaxResponseHeaderBytes: 64 << 10,
	}
	return f
}

// Status is the state of a source.
type Status struct {
	// LastTry is the time of the last fetch, and LastGood the time when the server
	// last sent or confirmed the content of the copy. Zero means never.
	LastTry, LastGood time.Time

	// NextTry is the time of the next fetch; zero means none.
	NextTry time.Time

	// Err is the error of the last fetch.
	Err error

	// Failures is the number of failed fetches since the last good one.
	Failures int

	// NotModified means that the last fetch found the copy up to date.
	NotModified bool

	// Replaced means that the copy is another version than the server's: see
	// [ReplaceCopy].
	Replaced bool

	// ETag and LastModified are the server's identifiers of the copy's version, and
	// Bytes is its size.
	ETag, LastModified string
	Bytes              int64

	// Sequence is the sequence number of the copy's signature, and Expires the time when
	// that expires; zero means that it does not say.
	Sequence int64
	Expires  time.Time
}

// Fetch fetches a source once, and replaces its copy if there is another version. The
// error is also in the Status.
func (f *Fetcher) Fetch(ctx context.Context, s Source) (Status, error) {
	s = s.withDefaults()
	status := Status{LastTry: time.Now()}
	current, notModified, err := f.fetch(ctx, s)
	status.NotModified, status.Replaced = notModified, current.Instead != ""
	current.describe(&status)
	if err != nil {
		status.Err = &SourceError{Name: s.Name, URL: s.ShownURL(), Err: withoutSecrets(err)}
		status.Failures = 1
	}
	return status, status.Err
}
