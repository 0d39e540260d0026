// Package certs serves a TLS certificate from PEM files, and goes on with a new
// one when the files change: certificates live for weeks, the gate for longer.
//
// [Open] fails where the files are of no use. After that they may be, for as long
// as it takes to write one after the other, or until somebody has mended them:
// the certificate that was good serves on, and the log says why.
package certs

import (
	"crypto/tls"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultPollInterval is how often the files are looked at where the file system
// does not report changes.
const DefaultPollInterval = 5 * time.Second

// debounce is how long after a reported change the files are looked at: the one
// that was written first is mostly not the only one.
const debounce = 250 * time.Millisecond

// expiresSoon is how long before its end a certificate is warned of. Those that
// are renewed by themselves are renewed earlier.
const expiresSoon = 7 * 24 * time.Hour

// Options are what [Open] can do without.
type Options struct {
	// Logger takes a line for each certificate that is loaded or is not, and for
	// one that expires. Nil means none.
	Logger *slog.Logger

	// PollInterval is how often the files are looked at whether or not the file
	// system reports changes. Zero means [DefaultPollInterval].
	PollInterval time.Duration

	// For tests.
	debounce time.Duration
	now      func() time.Time
	deaf     bool            // no file system events
	looked   chan<- struct{} // gets a value after each look
}

// Reloader holds the certificate of two files. Its methods are safe for
// concurrent use.
type Reloader struct {
	certFile, keyFile string
	options           Options
	log               *slog.Logger

	present atomic.Pointer[tls.Certificate]

	// Of Open, then of the goroutine that looks at the files.
	seen   string // what the files held, see readPair
	expiry expiry // what was logged

	watcher *watcher
	stop    chan struct{} // closed by Close
	closing sync.Once
	running sync.WaitGroup
}

// Open loads a certificate and begins to watch its files. The first certificate
// in certFile is the server's, and those that follow lead to a root that clients
// know; keyFile holds its private key, without a passphrase. Both may be the same
// file. Paths are better absolute: they are opened again and again.
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
	r.watcher = newWatcher(r.log, o.deaf)
	r.watcher.follow(certFile, keyFile) // first, so that no change is missed
	if err := r.look(); err != nil {
		r.watcher.close()
		return nil, err
	}
	r.running.Go(r.run)
	return r, nil
}

// Close ends the watching. The last certificate goes on to be served.
func (r *Reloader) Close() error {
	var err error
	r.closing.Do(func() {
		close(r.stop)
		r.running.Wait()
		err = r.watcher.close()
	})
	return err
}

// GetCertificate is for [tls.Config]. It gives the present certificate whatever
// name the client asks for.
func (r *Reloader) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return r.present.Load(), nil
}

// NotAfter is when the present certificate expires.
func (r *Reloader) NotAfter() time.Time { return r.present.Load().Leaf.NotAfter }

// Expiry says what is wrong with the time in which the present certificate is valid:
// that it has expired, expires within a week or is not valid yet, and what that
// means. It is empty if nothing is.
func (r *Reloader) Expiry() string {
	leaf, now := r.present.Load().Leaf, r.options.now()
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

// Names are the host names and addresses that the present certificate is for.
func (r *Reloader) Names() []string { return names(r.present.Load().Leaf) }

// run looks at the files when it is time to, until Close.
func (r *Reloader) run() {
	timer := time.NewTimer(r.options.PollInterval)
	defer timer.Stop()
	soon := false // the timer is set for what follows a reported change
	for {
		select {
		case <-r.stop:
			return
		case <-timer.C:
			r.lookAgain()
			soon = false
			timer.Reset(r.options.PollInterval)
			continue
		case <-r.watcher.rang:
		}
		if !soon {
			soon = true
			r.watcher.rest()
			timer.Reset(r.options.debounce)
		}
	}
}

// lookAgain is a look after the first, of which the log is told.
func (r *Reloader) lookAgain() {
	r.watcher.follow(r.certFile, r.keyFile)
	if err := r.look(); err != nil {
		r.log.Warn("certificate not loaded, the one before serves on", "error", err)
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

// look loads what the files hold if that is new. An error is given once for each
// state of the files.
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
	r.present.Store(pair)
	r.log.Info("certificate loaded", "names", strings.Join(r.Names(), ","), "not_after", stamp(r.NotAfter()))
	r.expiry = valid
	r.warn()
	return nil
}

// expiry says how a certificate stands towards its end.
type expiry int

const (
	valid expiry = iota
	endsSoon
	expired
)

// warn logs when the present certificate comes near its end, and when it expires.
func (r *Reloader) warn() {
	left := r.NotAfter().Sub(r.options.now())
	now := valid
	switch {
	case left <= 0:
		now = expired
	case left <= expiresSoon:
		now = endsSoon
	}
	if now == r.expiry {
		return
	}
	r.expiry = now
	switch now {
	case expired:
		r.log.Warn("certificate has expired: clients that check it refuse it; put a new one in the file", "not_after", stamp(r.NotAfter()))
	case endsSoon:
		r.log.Warn("certificate expires within 7 days: put a new one in the file", "not_after", stamp(r.NotAfter()))
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
