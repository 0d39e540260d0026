package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
)

// reader gets from other gates what a gate with rights reads from JetStream itself: see
// serveReaders.
type reader struct {
	m     *Member
	state string // the sum of the shared values that it has
}

// errNobody says that no gate has answered that may read.
var errNobody = errors.New("no gate that may change lists is there to answer one that only reads")

// ask asks one of the other gates.
func (r *reader) ask(ctx context.Context, q readQuestion) (*readAnswer, error) {
	text, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.m.brief(ctx)
	defer cancel()
	msg, err := r.m.nc.RequestWithContext(ctx, ReadSubject(r.m.o.Name), text)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, errNobody
	case err != nil:
		return nil, err
	}
	a := new(readAnswer)
	if err := json.Unmarshal(msg.Data, a); err != nil {
		return nil, fmt.Errorf("the answer of another gate: %w", err)
	}
	if a.Error != "" {
		return nil, fmt.Errorf("another gate says: %s", shortened(a.Error))
	}
	return a, nil
}

// readSession follows the fleet by asking other gates.
func (m *Member) readSession(ctx context.Context) (err error) {
	linked := m.whileLinked(ctx)
	defer linked.end()
	r := &reader{m: m}
	if err := r.lookState(linked); err != nil {
		return m.readFails(linked.lost(err))
	}
	m.setBuckets(&buckets{link: m.link, reads: r}, nil)
	err = r.follow(linked)
	if linked.isLost() {
		return nil // session begins again on the next connection
	}
	return m.readFails(err)
}

// readFails notes why a gate that only reads cannot use the fleet.
func (m *Member) readFails(err error) error {
	m.setBuckets(nil, err)
	m.goElsewhere()
	return err
}

// follow keeps the lists and the shared values as the other gates have them: at once when one says
// that something has changed, and now and then.
func (r *reader) follow(ctx context.Context) error {
	news := make(chan struct{}, 1)
	sub, err := r.m.nc.Subscribe(changedSubject, func(*nats.Msg) {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }()
	for failures := 0; ; {
		set, pause := r.m.listsSet.Load(), r.m.o.times.resync
		if err := r.look(ctx); err != nil {
			if failures++; failures == maxFailures || ctx.Err() != nil {
				return err
			}
			pause = r.m.o.times.retry
		} else {
			failures, r.m.failures, r.m.patience = 0, 0, minPatience
		}
		if err := r.pause(ctx, pause, news, set); err != nil {
			return err
		}
	}
}

// pause waits for a time, for news, or until the shared lists are other ones than those of a set.
func (r *reader) pause(ctx context.Context, d time.Duration, news <-chan struct{}, set int64) error {
	next := time.NewTimer(d)
	defer next.Stop()
	for r.m.listsSet.Load() == set {
		r.m.mu.Lock()
		changed := r.m.changed
		r.m.mu.Unlock()
		select {
		case <-changed:
			continue
		case <-news:
		case <-next.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		break
	}
	return nil
}

// look asks for all lists, and for the shared values.
func (r *reader) look(ctx context.Context) error {
	for _, l := range r.m.all() {
		if err := r.lookList(ctx, l); err != nil {
			return fmt.Errorf("reading list %s: %w", l.Name, err)
		}
	}
	return r.lookState(ctx)
}

// lookList asks for the value of a list's key, unless the gate has got it on this connection: in an older
// state that was put back meanwhile, its revision may have come again with another value.
func (r *reader) lookList(ctx context.Context, l *list) error {
	r.m.mu.Lock()
	before, known := l.remote, uint64(0)
	if before != nil && l.fresh {
		known = before.revision
	}
	r.m.mu.Unlock()
	a, err := r.ask(ctx, readQuestion{Do: askList, Key: l.key, Revision: known})
	if err == nil && !a.Same {
		if len(a.Values) != 1 {
			return errNoValue
		}
		l.observe(a.Values[0].Value, a.Values[0].Revision, before)
		return nil
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if err == nil && l.remote == before && !l.fresh {
		l.fresh = true
		r.m.notify()
	}
	return err
}

var errNoValue = errors.New("the answer of another gate has no value")

// last returns the value of a list's key: see buckets.last.
func (r *reader) last(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	a, err := r.ask(ctx, readQuestion{Do: askList, Key: key})
	switch {
	case err != nil:
		return nil, 0, err
	case len(a.Values) != 1:
		return nil, 0, errNoValue
	}
	return a.Values[0].Value, a.Values[0].Revision, nil
}

// lookState asks for the shared values that the gate does not have. If they change between two
// answers, it asks for all again the next time.
func (r *reader) lookState(ctx context.Context) error {
	first := ""
	for after := ""; ; {
		a, err := r.ask(ctx, readQuestion{Do: askState, Sum: r.state, After: after})
		if err != nil || a.Same {
			return err
		}
		if after == "" {
			first = a.Sum
		}
		for _, v := range a.Values {
			r.m.observeState(v.Key, v.Value, v.Revision)
			after = v.Key
		}
		if !a.More || len(a.Values) == 0 {
			if r.state = ""; a.Sum == first {
				r.state = first
			}
			return nil
		}
	}
}

// history returns earlier values of a list's key.
func (r *reader) history(ctx context.Context, key string) ([]readValue, error) {
	a, err := r.ask(ctx, readQuestion{Do: askHistory, Key: key})
	if err != nil {
		return nil, err
	}
	return a.Values, nil
}

// object opens an object.
func (r *reader) object(ctx context.Context, name string) (io.Reader, error) {
	a, err := r.ask(ctx, readQuestion{Do: askObject, Key: name})
	switch {
	case err != nil:
		return nil, err
	case a.None:
		return nil, fmt.Errorf("%w: %s is missing", errContent, name)
	}
	return &chunks{r: r, ctx: ctx, nuid: a.NUID, left: a.Size}, nil
}

// chunks reads an object, a chunk at a time.
type chunks struct {
	r    *reader
	ctx  context.Context
	nuid string
	next uint64 // sequence from which on the next chunk may be
	rest []byte // of the present one
	left int64  // bytes that are still to come
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		if c.left <= 0 {
			return 0, io.EOF
		}
		if err := c.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// fetch asks for the next chunk, also when a gate ends meanwhile or a server lags behind.
func (c *chunks) fetch() error {
	var err error
	for range maxFailures {
		var a *readAnswer
		a, err = c.r.ask(c.ctx, readQuestion{Do: askChunk, NUID: c.nuid, Sequence: c.next})
		switch {
		case err == nil && !a.None && len(a.Data) > 0 && int64(len(a.Data)) <= c.left && a.Sequence >= c.next:
			c.rest, c.next, c.left = a.Data, a.Sequence+1, c.left-int64(len(a.Data))
			return nil
		case err == nil:
			err = fmt.Errorf("%w: a part is missing", errContent)
		}
		if c.r.m.sleep(c.ctx, c.r.m.o.times.retry); c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
	}
	return err
}

// show has another gate show this one among the members (askAlive), or remove it there (askGone).
func (r *reader) show(ctx context.Context, do string, sign []byte) error {
	_, err := r.ask(ctx, readQuestion{Do: do, Sign: sign})
	return err
}
