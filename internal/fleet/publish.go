package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// publish stores the content of v, and makes v the fleet's version if the key still has the
// revision; else the error is ErrBehind. See store for before and old.
func (b *buckets) publish(ctx context.Context, key string, v, before *Version, old, content io.ReadSeeker, revision uint64) (current uint64, err error) {
	var value []byte
	err = b.onLink(ctx, func(ctx context.Context) (err error) {
		again := value != nil
		if again {
			var ok bool
			if current, ok = b.arrived(ctx, key, value, revision); ok {
				return nil
			}
		}
		if err := b.store(ctx, v, before, old, content); err != nil {
			return b.offline(err)
		}
		if value, err = v.encode(); err != nil {
			return err
		}
		current, err = b.update(ctx, key, value, revision, again)
		return err
	})
	if err != nil {
		return 0, err
	}
	b.counters.published.Add(1)
	b.say(key, current)
	return current, nil
}

// update makes a value that of a key, if that still has the revision; else the error is ErrBehind.
// Again says that the value may be there already.
func (b *buckets) update(ctx context.Context, key string, value []byte, revision uint64, again bool) (uint64, error) {
	current, err := b.lists.Update(ctx, key, value, revision)
	behind := errors.Is(err, jetstream.ErrKeyRevisionMismatch)
	if err == nil {
		return current, nil
	}
	if !behind || again {
		if current, ok := b.arrived(ctx, key, value, revision); ok {
			return current, nil
		}
	}
	if behind {
		b.counters.conflicts.Add(1)
		return 0, ErrBehind
	}
	return 0, b.offline(err)
}

// arrived reports whether a value whose acknowledgement was lost is, or was, the one that followed a
// revision: another gate may have changed the list again. A value with an older revision may be
// equal, since gates put back what the fleet has lost.
func (b *buckets) arrived(ctx context.Context, key string, value []byte, after uint64) (revision uint64, ok bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	entries, err := b.history(ctx, key)
	if err != nil {
		return 0, false
	}
	i := slices.IndexFunc(entries, func(e readValue) bool { return e.Revision > after && bytes.Equal(e.Value, value) })
	if i < 0 {
		return 0, false
	}
	return entries[i].Revision, true
}

// compactJSON returns JSON without space; nil if it is none.
func compactJSON(text []byte) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return nil
	}
	return b.Bytes()
}
