package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"spamgate/blocklist/store"
	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/internal/fetch"
	"spamgate/internal/term"
	"spamgate/internal/version"
)

// UserAgent is sent to the servers of lists.
var UserAgent = "spamgate/" + version.Number

// FetchSources returns the sources of the lists that come from URLs. An error is about a file
// of certificate authorities.
func FetchSources(lists []config.List) (sources []fetch.Source, err error) {
	for _, l := range lists {
		if l.URL == "" {
			continue
		}
		s := FetchSource(l)
		if l.TLSCA != "" {
			roots, failed := certs.LoadPool(l.TLSCA)
			if failed != nil {
				err = errors.Join(err, fmt.Errorf("list %q: tls_ca: %w", l.Name, failed))
			}
			s.RootCAs = roots
		}
		sources = append(sources, s)
	}
	return sources, err
}

// FetchSource returns the source of a list without its certificate authorities.
func FetchSource(l config.List) fetch.Source {
	return fetch.Source{
		Name:         l.Name,
		URL:          l.URL,
		AllowHTTP:    l.AllowHTTP,
		PublicKey:    l.PublicKey,
		SignatureURL: l.SignatureURL,
		SignedFile:   l.SignedFile,
		Refresh:      l.Refresh,
		Timeout:      l.Timeout,
		MaxBytes:     cmp.Or(l.MaxBytes, maxFetched),
		Copy:         l.Copy,
		StateDir:     l.StateDir(),
	}
}

// Opener opens the files of a list.
func Opener(l config.List) store.Opener {
	o := store.Opener{StateDir: l.StateDir()}
	if l.Instead != "" {
		o.Instead = map[string]string{l.Copy: l.Instead}
	}
	return o
}

// WithoutCopy returns the lists from URLs that have no copy on disk yet.
func WithoutCopy(c *config.Config) []config.List {
	var missing []config.List
	for _, l := range c.Lists {
		if l.URL == "" {
			continue
		}
		if _, err := Opener(l).Stat(l.Copy); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, l)
		}
	}
	return missing
}

// FirstLoad fetches the lists that have no copy on disk yet. It returns the errors of lists
// that are not optional. The store decides whether it can do without them: a stored version
// may still be good. Failures are not logged, since StartSources tries again and logs them.
func FirstLoad(ctx context.Context, c *config.Config, log *slog.Logger, stderr io.Writer) error {
	missing := WithoutCopy(c)
	if len(missing) == 0 {
		return nil
	}
	sources, err := FetchSources(missing)
	if err != nil {
		return err
	}
	// Nothing else handles signals at this time.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, l := range missing {
		log.Info("fetching list for the first time", "list", l.Name)
	}
	errs := make([]error, len(missing))
	FetchAll(ctx, sources, log, stderr, func(i int, status fetch.Status) {
		switch {
		case status.Err == nil:
			log.Info("list fetched", "list", missing[i].Name, "bytes", status.Bytes)
		case !missing[i].Optional:
			errs[i] = status.Err
		}
	})
	return errors.Join(errs...)
}

// StartSources begins to keep the copies of lists up to date. The caller closes the Fetcher,
// and updates it after a reload.
func StartSources(sources []fetch.Source, log *slog.Logger) *fetch.Fetcher {
	f := fetch.New(fetch.Options{Logger: log, UserAgent: UserAgent})
	f.Update(sources)
	return f
}

// maxFetching bounds the lists that are fetched at the same time.
const maxFetching = 4

// FetchAll fetches sources with a progress bar on w, and calls done for each, one
// at a time.
func FetchAll(ctx context.Context, sources []fetch.Source, log *slog.Logger, w io.Writer, done func(i int, status fetch.Status)) {
	bar := newFetchBar(w, len(sources))
	f := fetch.New(fetch.Options{Logger: log, UserAgent: UserAgent, Progress: bar.show})
	defer f.Close()
	var wg sync.WaitGroup
	var mu sync.Mutex
	room := make(chan struct{}, maxFetching)
	for i, s := range sources {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			status, _ := f.Fetch(ctx, s) // the status holds the error
			mu.Lock()
			defer mu.Unlock()
			bar.clear()
			done(i, status)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		bar.bar.FinishInterrupted()
	}
}

// fetchBar shows the progress of several fetches.
type fetchBar struct {
	mu    sync.Mutex
	bar   term.Progress
	total int                // fetches
	part  map[string]float64 // of each that has begun, from 0 to 1
}

func newFetchBar(w io.Writer, fetches int) *fetchBar {
	return &fetchBar{bar: term.NewProgress(w), total: fetches, part: map[string]float64{}}
}

// show implements fetch.Options.Progress. If the size of a list is not known, its part
// approaches 1.
func (b *fetchBar) show(name string, done, total int64) {
	const usual = 4 << 20
	b.mu.Lock()
	defer b.mu.Unlock()
	if total > 0 {
		b.part[name] = float64(done) / float64(total)
	} else {
		b.part[name] = float64(done) / float64(done+usual)
	}
	sum := 0.0
	for _, part := range b.part {
		sum += part
	}
	b.bar.Show(sum/float64(b.total), fmt.Sprintf("%s, %s", name, term.ByteSize(done)))
}

// clear removes the bar so that a line can be printed.
func (b *fetchBar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bar.Finish()
}

// ExplainMissing adds to an error about lists that were never fetched how to fetch them.
func ExplainMissing(c *config.Config, err error) error {
	err = PlaceLists(c, err)
	if !errors.Is(err, store.ErrNotFetched) {
		return err
	}
	return fmt.Errorf("%w\nchecking fetches nothing: start the gate, or run: spamgate lists fetch%s", err, configArgument(c))
}

// configArgument returns the option that names the configuration, with a space before it.
func configArgument(c *config.Config) string {
	if filepath.Clean(c.File) == "config.toml" {
		return ""
	}
	return " --config " + term.ShellWord(c.File)
}
