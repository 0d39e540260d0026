package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/store"
	"spamgate/internal/admin"
	"spamgate/internal/atomicfile"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/publish"
	"spamgate/internal/report"
	"spamgate/internal/setup"
	"spamgate/internal/web"
)

// publisher publishes the lists that others fetch from the gate, whenever one has another
// version, and again before its signature expires. Mail does not wait for it.
type publisher struct {
	store *store.Store
	log   *slog.Logger

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	config  *config.Config
	files   setup.Publishing
	wake    context.CancelFunc // ends a wait of run
	servers []*publish.Server
	results map[string]publish.Result // by the name of the list
	failed  map[string]string         // the last error, by the name of the list

	// Of run alone, by the name of the list.
	done     map[string]published
	changing map[string]int // how often in a row it was listfiles.ErrChanges
}

// published describes what was published.
type published struct {
	sum     string // of the list's content, see blocklist.ListStats
	reasons bool   // were published, too
	key     string // that has signed it
	expires time.Duration
}

// When a list is published without another version.
const (
	publishRetry = time.Minute      // after a failure
	publishSoon  = time.Second      // after a list has changed meanwhile
	publishAgain = 30 * time.Second // after the start: a predecessor may have published for the last time
	publishCheck = 10 * time.Minute // to see how old the signatures are
)

func newPublisher(log *slog.Logger) *publisher {
	p := &publisher{
		log:     log,
		results: map[string]publish.Result{}, done: map[string]published{}, failed: map[string]string{}, changing: map[string]int{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// prepare prepares the change to a configuration: see part.
func (p *publisher) prepare(_ context.Context, _, c *config.Config) (change, error) {
	files, err := setup.OpenPublish(c)
	return change{commit: func() { p.configure(c, files) }}, err
}

// start begins to publish the lists of a store. With a predecessor it publishes once more when that has ended.
func (p *publisher) start(s *store.Store, predecessor bool) {
	p.store = s
	p.running.Go(func() {
		if predecessor {
			p.run(time.Now().Add(publishAgain))
			clear(p.done)
		}
		p.run(time.Time{})
	})
}

// close ends publishing, and waits for that.
func (p *publisher) close() error {
	p.cancel()
	p.running.Wait()
	return nil
}

// run publishes until the end of the gate or, if it is not zero, a time.
func (p *publisher) run(until time.Time) {
	all := p.ctx
	if !until.IsZero() {
		var cancel context.CancelFunc
		all, cancel = context.WithDeadline(p.ctx, until)
		defer cancel()
	}
	for all.Err() == nil {
		ctx, wake := context.WithCancel(all)
		c, files := p.settings(wake)
		set := p.store.Set()
		waiting, cancel := context.WithTimeout(ctx, p.publishAll(c, files, set))
		_, err := p.store.Await(waiting, set.Generation()+1)
		cancel()
		wake()
		if errors.Is(err, store.ErrClosed) {
			return
		}
	}
}

// settings returns the configuration, and has changes of it call wake.
func (p *publisher) settings(wake context.CancelFunc) (*config.Config, setup.Publishing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wake = wake
	return p.config, p.files
}

// configure installs another configuration.
func (p *publisher) configure(c *config.Config, files setup.Publishing) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.config, p.files = c, files
	for name := range p.results {
		if !isPublished(c, name) {
			delete(p.results, name)
			delete(p.failed, name)
		}
	}
	for _, s := range p.servers {
		s.SetTokens(files.Tokens)
		s.Keep(func(file string) bool {
			return slices.ContainsFunc(c.Lists, func(l config.List) bool { return l.Publish && publishedFile(l.Name) == file })
		})
	}
	if p.wake != nil {
		p.wake()
	}
}

func isPublished(c *config.Config, list string) bool {
	i := setup.ListIndex(c, list)
	return i >= 0 && c.Lists[i].Publish
}

// publishedFile returns the name of the file of a list.
func publishedFile(list string) string { return list + ".txt" }

// publishAll publishes the lists that are not published as they are, and returns when it is to
// do so again.
func (p *publisher) publishAll(c *config.Config, files setup.Publishing, set *blocklist.Set) (next time.Duration) {
	next = publishCheck
	if c.Publish.Addr == "" {
		return next
	}
	for _, stats := range set.Stats().Lists {
		if !isPublished(c, stats.Name) || stats.Loaded.IsZero() || p.ctx.Err() != nil {
			continue
		}
		l := c.Lists[setup.ListIndex(c, stats.Name)]
		current := published{stats.Sum, l.PublicReason, files.Key.Public().String(), c.Publish.Expires}
		if p.done[l.Name] == current && p.isFresh(l.Name) {
			continue
		}
		if err := p.publish(c, l, files.Key, set, stats); err != nil {
			if p.ctx.Err() != nil {
				return publishRetry
			}
			if errors.Is(err, listfiles.ErrChanges) {
				p.changing[l.Name]++
				next = min(next, publishSoon)
				continue
			}
			next = min(next, publishRetry)
			p.fail(l.Name, err)
			continue
		}
		p.done[l.Name] = current
		delete(p.changing, l.Name)
	}
	return next
}

// fail notes that a list cannot be published. It logs a lasting failure once.
func (p *publisher) fail(list string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := err.Error()
	if p.failed[list] != text {
		p.log.Error("list not published", "list", list, "error", err)
	}
	p.failed[list] = text
}

// status returns what others fetch of a list.
func (p *publisher) status(list string) *admin.Published {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.config.Publish.Addr == "" || !isPublished(p.config, list) {
		return nil
	}
	r := p.results[list]
	return &admin.Published{Sequence: r.Sequence, Signed: report.TimeOrNil(r.Signed), Expires: report.TimeOrNil(r.Expires), Error: p.failed[list]}
}

// isFresh reports whether others can fetch a list, and its signature need not be renewed.
func (p *publisher) isFresh(list string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r, ok := p.results[list]
	return ok && (r.Expires.IsZero() || time.Until(r.Expires) >= r.Expires.Sub(r.Signed)/2)
}

// publish publishes the version of a list that serves.
func (p *publisher) publish(c *config.Config, l config.List, key publish.Key, set *blocklist.Set, stats blocklist.ListStats) error {
	dir := setup.PublishDir(c)
	if err := atomicfile.In(dir).Make(); err != nil {
		return err
	}
	left := 0
	to := publish.List{Dir: dir, Name: publishedFile(l.Name), Key: key, Expires: c.Publish.Expires, Patches: true}
	r, err := to.Publish(time.Now(), func(w io.Writer) (err error) {
		fromFile := listfiles.IsServedFile(l, stats) && p.changing[l.Name] < maxChanging
		left, err = writePublished(&endedWriter{p.ctx, w}, l, set, stats, fromFile)
		return err
	})
	if err != nil {
		return err
	}
	p.serve(l.Name, r)
	if r.What != publish.Unchanged {
		attrs := []any{"list", l.Name, "sequence", r.Sequence, "bytes", r.Bytes, "patch", r.Patch}
		if left > 0 {
			attrs = append(attrs, "left_out", left)
		}
		message := "list published"
		if r.What == publish.Signed {
			message = "list signed again"
		}
		p.log.Info(message, attrs...)
	}
	return nil
}

// maxChanging is how often a list is to be copied from its file, before it is written from its
// index.
const maxChanging = 5

// writePublished writes the version of a list that serves, from its file or from the index. It
// returns how many entries the format cannot express.
func writePublished(w io.Writer, l config.List, set *blocklist.Set, stats blocklist.ListStats, fromFile bool) (left int, err error) {
	if _, err := io.WriteString(w, publish.Start(l.Name)); err != nil {
		return 0, err
	}
	if fromFile {
		_, err := listfiles.CopyServed(w, l, stats)
		return 0, err
	}
	in := listfiles.InOrder{List: l.Name, WithoutNotes: true, WithoutReasons: !l.PublicReason}
	var ok bool
	if in.Index, in.Key, in.Files, ok = set.Index(l.Name); !ok {
		return 0, fmt.Errorf("list %s has no version that could be published", l.Name)
	}
	if err := in.Sort(); err != nil {
		return 0, err
	}
	_, err = listfile.Write(w, in.Entries(), listfiles.PlainOptions(l), func(listfile.Problem) { left++ })
	return left, errors.Join(err, in.Err)
}

// endedWriter writes until its context ends.
type endedWriter struct {
	ctx context.Context
	w   io.Writer
}

func (w *endedWriter) Write(p []byte) (int, error) {
	if err := context.Cause(w.ctx); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// serve serves a list from now on, if it is still published.
func (p *publisher) serve(list string, r publish.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !isPublished(p.config, list) {
		return
	}
	p.results[list] = r
	delete(p.failed, list)
	for _, s := range p.servers {
		s.Set(publishedFile(list), r)
	}
}

// newServer returns what serves at one address: all that is published, now and later.
func (p *publisher) newServer(c *config.Config, tokens []string) *publishedPages {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := publish.NewServer(setup.PublishDir(c))
	s.Idle = web.Idle
	s.SetTokens(tokens)
	for name, r := range p.results {
		s.Set(publishedFile(name), r)
	}
	p.servers = append(p.servers, s)
	return &publishedPages{s, p}
}

// publishedPages implements web.Pages.
type publishedPages struct {
	*publish.Server
	publisher *publisher
}

// Close ends waiting requests, and forgets the server.
func (s *publishedPages) Close() {
	p := s.publisher
	p.mu.Lock()
	p.servers = slices.DeleteFunc(p.servers, func(other *publish.Server) bool { return other == s.Server })
	p.mu.Unlock()
	s.Server.Close()
}
