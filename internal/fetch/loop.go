package fetch

import (
	"context"
	"errors"
	"io/fs"
	"regexp"
	"time"
)

// loop fetches one source regularly.
type loop struct {
	fetcher *Fetcher
	source  Source
	cancel  context.CancelFunc
	done    chan struct{}

	status Status // guarded by Fetcher.mu

	logged string // failureText of the failure that was logged
	seen   string // the server's identifier of the signature that ended a wait last

	// woken means that a wait has ended because the server said that there is news, known is
	// the sum of the copy's signature, and inVain counts such waits since that has changed.
	woken  bool
	known  string
	inVain int
}

// Update sets the sources that are refreshed in the background. A source that has not
// changed keeps its schedule. Any other is fetched at once if it has no copy, if the
// copy is not known to be from this source, or if it is older than its refresh interval.
func (f *Fetcher) Update(sources []Source) {
	f.updating.Lock()
	defer f.updating.Unlock()
	wanted := map[string]Source{}
	for _, s := range sources {
		wanted[s.Name] = s.withDefaults()
	}
	f.stop(func(l *loop) bool {
		s, ok := wanted[l.source.Name]
		return !ok || !s.same(l.source)
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, s := range wanted {
		if f.loops[name] == nil {
			f.loops[name] = f.start(s)
		}
	}
}

// Close ends all background fetches and waits for their end.
func (f *Fetcher) Close() {
	f.updating.Lock()
	defer f.updating.Unlock()
	f.stop(func(*loop) bool { return true })
}

// Status returns the status of a source that is refreshed in the background; false if
// there is none with that name.
func (f *Fetcher) Status(name string) (Status, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.loops[name]
	if !ok {
		return Status{}, false
	}
	return l.status, true
}

// stop ends the chosen loops, and waits for them.
func (f *Fetcher) stop(chosen func(*loop) bool) {
	var stopped []*loop
	f.mu.Lock()
	for name, l := range f.loops {
		if chosen(l) {
			l.cancel()
			delete(f.loops, name)
			stopped = append(stopped, l)
		}
	}
	f.mu.Unlock()
	for _, l := range stopped {
		<-l.done
	}
}

func (f *Fetcher) start(s Source) *loop {
	ctx, cancel := context.WithCancel(context.Background())
	l := &loop{fetcher: f, source: s, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		l.run(ctx)
	}()
	return l
}

func (l *loop) run(ctx context.Context) {
	status := firstStatus(l.source, time.Now())
	for {
		l.publish(status)
		l.rest(ctx, status)
		if ctx.Err() != nil {
			return
		}
		tried, err := l.fetcher.Fetch(ctx, l.source)
		if ctx.Err() != nil {
			return
		}
		tried.Failures = 0
		if err != nil {
			tried.Failures = status.Failures + 1
		}
		tried.NextTry = time.Now().Add(nextDelay(l.source.Refresh, tried.Failures, err))
		l.report(tried)
		status = tried
	}
}

func (l *loop) publish(s Status) {
	l.fetcher.mu.Lock()
	defer l.fetcher.mu.Unlock()
	l.status = s
}

// firstStatus returns the status of the copy on disk, with the time of the first fetch.
func firstStatus(s Source, now time.Time) Status {
	st, err := loadState(s)
	var known Status
	st.describe(&known)
	since := st.Checked
	if errors.Is(err, fs.ErrNotExist) {
		since = s.modified() // somebody else made the copy
	}
	known.NextTry = now
	if age := now.Sub(since); age >= 0 && age < s.Refresh {
		known.NextTry = since.Add(jitter(s.Refresh))
	}
	return known
}

// modified returns the modification time of the copy; zero if there is none.
func (s Source) modified() time.Time {
	tree, name := s.place()
	info, err := tree.StatFile(name)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// report logs a fetch. It logs a lasting failure once.
func (l *loop) report(s Status) {
	log := l.fetcher.log.With("list", l.source.Name, "url", l.source.ShownURL())
	switch {
	case s.Err != nil:
		text := failureText(s.Err)
		if text == l.logged {
			return
		}
		l.logged = text
		attrs := []any{"error", errors.Unwrap(s.Err), "next_try", s.NextTry.Format(time.RFC3339)}
		if !s.LastGood.IsZero() {
			attrs = append(attrs, "copy_from", s.LastGood.Format(time.RFC3339))
		}
		if l.source.modified().IsZero() {
			log.Error("list not fetched, and there is no copy of it", attrs...)
		} else {
			log.Warn("list not fetched, its copy stays as it is", attrs...)
		}
	case !s.NotModified:
		log.Info("list fetched", "bytes", s.Bytes, "took", time.Since(s.LastTry).Round(time.Millisecond))
	case l.logged != "":
		log.Info("list up to date again")
	}
	if s.Err == nil {
		l.logged = ""
	}
}

// localPort matches the local end of a connection as package net writes it, which is
// another one in each fetch.
var localPort = regexp.MustCompile(`\S+:\d+->`)

// failureText returns the text of a failure without what changes from fetch to fetch.
func failureText(err error) string { return localPort.ReplaceAllString(err.Error(), "") }
