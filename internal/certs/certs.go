// Package certs serves TLS certificates from PEM files, and loads each again when its
// files change.
//
// [Open] fails if files are invalid. Later they may be invalid, for instance while
// a tool writes one after the other: the old certificate stays, and the log says why.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"spamgate/internal/dirwatch"
	"spamgate/internal/text"
)

// DefaultPollInterval is the time between two checks of the files if the file system
// does not report changes.
const DefaultPollInterval = 5 * time.Second

// debounce is the delay of a check after a reported change: usually more files change
// at that time.
const debounce = 250 * time.Millisecond

// expiresSoon is how long before the end of a certificate a warning is logged. Tools
// that renew certificates do so earlier.
const expiresSoon = 7 * 24 * time.Hour

// Options are optional settings of [Open].
type Options struct {
	// Logger receives a line for each certificate that is loaded, fails to load or
	// expires. Nil means none.
	Logger *slog.Logger

	// PollInterval is the time between two checks if the file system reports no
	// changes. Zero means [DefaultPollInterval].
	PollInterval time.Duration

	// For tests.
	debounce time.Duration
	now      func() time.Time
	deaf     bool            // no file system events
	looked   chan<- struct{} // gets a value after each check
}

// Files are the files of a certificate. The first certificate in Cert is the server's;
// the others are the chain to a root that clients trust. Key has its private key,
// without a passphrase. Both may be the same file. The paths should be absolute, since
// they are opened again and again.
type Files struct{ Cert, Key string }

// Reloader serves certificates. Its methods are safe for concurrent use.
type Reloader struct {
	pairs   []*pair
	options Options

	watcher *dirwatch.Watcher
	stop    chan struct{} // closed by Close
	closing sync.Once
	running sync.WaitGroup
}

// pair is a certificate with its key.
type pair struct {
	Files
	log *slog.Logger

	current atomic.Pointer[tls.Certificate]

	// Owned by Open, then by the goroutine that checks the files.
	seen   string // the contents of the files, see readPair
	warned string // the last warning of warn
}

// Open loads certificates, at least one, and watches their files. Its error is a
// [PairError].
func Open(files []Files, o Options) (*Reloader, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.PollInterval <= 0 {
		o.PollInterval = DefaultPollInterval
	}
	if o.debounce == 0 {
		o.debounce = debounce
	}
	if o.now == nil {
		o.now = time.Now
	}
	r := &Reloader{options: o, stop: make(chan struct{})}
	for _, f := range files {
		r.pairs = append(r.pairs, &pair{Files: f, log: o.Logger.With("cert", f.Cert)})
	}
	r.watcher = dirwatch.New(o.Logger, "certificates", !o.deaf)
	r.watch() // before reading the files, to miss no change
	for i, p := range r.pairs {
		if err := p.look(o.now()); err != nil {
			r.watcher.Close()
			return nil, &PairError{Index: i, Of: len(files), Err: err}
		}
	}
	r.running.Go(r.run)
	return r, nil
}

// Close stops watching. The last certificates remain.
func (r *Reloader) Close() error {
	var err error
	r.closing.Do(func() {
		close(r.stop)
		r.running.Wait()
		err = r.watcher.Close()
	})
	return err
}

// Certificate describes a certificate in use.
type Certificate struct {
	File     string   // its path
	Names    []string // host names and addresses
	NotAfter time.Time

	// Expiry says that it has expired, expires within a week or is not valid yet, and
	// what that means. Otherwise it is empty.
	Expiry string
}

// Certificates returns the current certificates, in the order of the files.
func (r *Reloader) Certificates() []Certificate {
	var all []Certificate
	for _, p := range r.pairs {
		leaf := p.current.Load().Leaf
		all = append(all, Certificate{p.Cert, names(leaf), leaf.NotAfter, expiry(leaf, r.options.now())})
	}
	return all
}

// expiry returns the Expiry of a certificate.
func expiry(leaf *x509.Certificate, now time.Time) string {
	switch {
	case !now.Before(leaf.NotAfter):
		return "the certificate expired at " + stamp(leaf.NotAfter) + ": clients that check it refuse it"
	case now.Before(leaf.NotBefore):
		return "the certificate is not valid before " + stamp(leaf.NotBefore) + ": until then clients that check it refuse it"
	case leaf.NotAfter.Sub(now) <= expiresSoon:
		return "the certificate expires at " + stamp(leaf.NotAfter) + ": from then on clients that check it refuse it"
	}
	return ""
}

// run checks the files at intervals and after changes, until Close.
func (r *Reloader) run() {
	r.watcher.Loop(r.stop, r.options.PollInterval, r.options.debounce, r.lookAgain)
}

// watch watches the directories that lead to the files.
func (r *Reloader) watch() {
	r.watcher.Take()
	for _, p := range r.pairs {
		for _, file := range []string{p.Cert, p.Key} {
			if path, err := filepath.Abs(file); err == nil {
				_, _ = dirwatch.Find([]string{text.EscapeGlob(path)}, r.watcher.Plan) // look reports errors
			}
		}
	}
	r.watcher.Settle()
}

// lookAgain checks the files after the first time, and logs errors.
func (r *Reloader) lookAgain() {
	r.watch()
	now := r.options.now()
	for _, p := range r.pairs {
		if err := p.look(now); err != nil {
			p.log.Warn("certificate not loaded, the old one stays", "error", err)
		}
		p.warn(now)
	}
	if r.options.looked == nil {
		return
	}
	select {
	case r.options.looked <- struct{}{}:
	case <-r.stop:
	}
}

// look loads the certificate if the files have changed. It returns an error once for
// each state of the files.
func (p *pair) look(now time.Time) error {
	cert, key, seen, err := readPair(p.Cert, p.Key)
	if seen == p.seen {
		return nil
	}
	p.seen = seen
	if err != nil {
		return err
	}
	parsed, err := parsePair(p.Cert, p.Key, cert, key)
	if err != nil {
		return err
	}
	p.current.Store(parsed)
	p.log.Info("certificate loaded", "names", strings.Join(names(parsed.Leaf), ","), "not_after", stamp(parsed.Leaf.NotAfter))
	p.warned = ""
	p.warn(now)
	return nil
}

// warn logs when the current certificate expires soon, and when it has expired, once
// each.
func (p *pair) warn(now time.Time) {
	warning, notAfter := "", p.current.Load().Leaf.NotAfter
	switch left := notAfter.Sub(now); {
	case left <= 0:
		warning = "certificate has expired: clients that check it refuse it; put a new one in the file"
	case left <= expiresSoon:
		warning = "certificate expires within 7 days: put a new one in the file"
	}
	if warning != p.warned && warning != "" {
		p.log.Warn(warning, "not_after", stamp(notAfter))
	}
	p.warned = warning
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
