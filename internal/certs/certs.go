// Package certs serves a TLS certificate from PEM files, and loads it again when the
// files change.
//
// [Open] fails if the files are invalid. Later they may be invalid, for instance while
// a tool writes one after the other: the old certificate stays, and the log says why.
package certs

import (
	"crypto/tls"
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

// Reloader serves the certificate of two files. Its methods are safe for concurrent
// use.
type Reloader struct {
	certFile, keyFile string
	options           Options
	log               *slog.Logger

	current atomic.Pointer[tls.Certificate]

	// Owned by Open, then by the goroutine that checks the files.
	seen   string // the contents of the files, see readPair
	warned string // the last warning of warn

	watcher *dirwatch.Watcher
	stop    chan struct{} // closed by Close
	closing sync.Once
	running sync.WaitGroup
}

// Open loads a certificate and watches its files. The first certificate in certFile is
// the server's; the others are the chain to a root that clients trust. keyFile has its
// private key, without a passphrase. Both may be the same file. The paths should be
// absolute, since they are opened again and again.
func Open(certFile, keyFile string, o Options) (*Reloader, error) {
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
	r := &Reloader{
		certFile: certFile,
		keyFile:  keyFile,
		options:  o,
		log:      o.Logger.With("cert", certFile),
		stop:     make(chan struct{}),
	}
	r.watcher = dirwatch.New(r.log, "certificates", !o.deaf)
	r.watch() // before reading the files, to miss no change
	if err := r.look(); err != nil {
		r.watcher.Close()
		return nil, err
	}
	r.running.Go(r.run)
	return r, nil
}

// Close stops watching. The last certificate remains.
func (r *Reloader) Close() error {
	var err error
	r.closing.Do(func() {
		close(r.stop)
		r.running.Wait()
		err = r.watcher.Close()
	})
	return err
}

// GetCertificate returns the current certificate for any name; it is for [tls.Config].
func (r *Reloader) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return r.current.Load(), nil
}

// NotAfter returns when the current certificate expires.
func (r *Reloader) NotAfter() time.Time { return r.current.Load().Leaf.NotAfter }

// Expiry says that the current certificate has expired, expires within a week or is not
// valid yet, and what that means. Otherwise it is empty.
func (r *Reloader) Expiry() string {
	leaf, now := r.current.Load().Leaf, r.options.now()
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

// Names returns the host names and addresses of the current certificate.
func (r *Reloader) Names() []string { return names(r.current.Load().Leaf) }

// run checks the files at intervals and after changes, until Close.
func (r *Reloader) run() {
	timer := time.NewTimer(r.options.PollInterval)
	defer timer.Stop()
	soon := false // the timer is set to debounce a reported change
	for {
		select {
		case <-r.stop:
			return
		case <-timer.C:
			r.lookAgain()
			soon = false
			timer.Reset(r.options.PollInterval)
		case <-r.watcher.Rang():
			r.watcher.Take() // a busy directory rests until the look
			if !soon {
				soon = true
				timer.Reset(r.options.debounce)
			}
		}
	}
}

// watch watches the directories that lead to the files.
func (r *Reloader) watch() {
	r.watcher.Take()
	for _, file := range []string{r.certFile, r.keyFile} {
		if path, err := filepath.Abs(file); err == nil {
			_, _ = dirwatch.Find([]string{text.EscapeGlob(path)}, r.watcher.Plan) // look reports errors
		}
	}
	r.watcher.Settle()
}

// lookAgain checks the files after the first time, and logs errors.
func (r *Reloader) lookAgain() {
	r.watch()
	if err := r.look(); err != nil {
		r.log.Warn("certificate not loaded, the old one stays", "error", err)
	}
	r.warn()
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
func (r *Reloader) look() error {
	cert, key, seen, err := readPair(r.certFile, r.keyFile)
	if seen == r.seen {
		return nil
	}
	r.seen = seen
	if err != nil {
		return err
	}
	pair, err := parsePair(r.certFile, r.keyFile, cert, key)
	if err != nil {
		return err
	}
	r.current.Store(pair)
	r.log.Info("certificate loaded", "names", strings.Join(r.Names(), ","), "not_after", stamp(r.NotAfter()))
	r.warned = ""
	r.warn()
	return nil
}

// warn logs when the current certificate expires soon, and when it has expired, once
// each.
func (r *Reloader) warn() {
	warning := ""
	switch left := r.NotAfter().Sub(r.options.now()); {
	case left <= 0:
		warning = "certificate has expired: clients that check it refuse it; put a new one in the file"
	case left <= expiresSoon:
		warning = "certificate expires within 7 days: put a new one in the file"
	}
	if warning != r.warned && warning != "" {
		r.log.Warn(warning, "not_after", stamp(r.NotAfter()))
	}
	r.warned = warning
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
