package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The buckets of the fleet.
const (
	bucketLists   = "spamgate-lists"   // which version of each list is current
	bucketContent = "spamgate-content" // the contents
	bucketState   = "spamgate-state"   // pins, accepted contents, ended sessions
	bucketMembers = "spamgate-members" // signs of life
	bucketLeases  = "spamgate-leases"  // who does what only one may do
)

// historyOf is how many versions of a list the fleet remembers, and historyContent of how many
// it keeps the contents.
const (
	historyOf      = 64
	historyContent = 5
)

// replicas is how many servers hold the buckets, if there are so many.
const replicas = 3

// buckets are the open buckets.
type buckets struct {
	js                            jetstream.JetStream
	lists, state, members, leases jetstream.KeyValue
	content                       jetstream.ObjectStore
	created                       time.Time // of lists
}

// openBuckets opens the buckets, and makes those that are missing.
func (m *Member) openBuckets(ctx context.Context) (*buckets, error) {
	js, err := jetstream.New(m.nc, jetstream.WithDefaultTimeout(m.o.times.edit))
	if err != nil {
		return nil, err
	}
	b := &buckets{js: js}
	for _, k := range []struct {
		bucket  *jetstream.KeyValue
		name    string
		history int64
		ttl     time.Duration
	}{
		{&b.lists, bucketLists, historyOf, 0},
		{&b.state, bucketState, 1, 0},
		{&b.members, bucketMembers, 1, 4 * m.o.times.presence},
		{&b.leases, bucketLeases, 1, m.o.times.lease},
	} {
		if *k.bucket, err = openKV(ctx, js, k.name, k.history, k.ttl); err != nil {
			return nil, fmt.Errorf("the bucket %s: %w", k.name, err)
		}
	}
	b.content, err = js.ObjectStore(ctx, bucketContent)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		b.content, err = replicated(func(n int) (jetstream.ObjectStore, error) {
			return js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: bucketContent, Replicas: n})
		})
	}
	if err != nil {
		return nil, fmt.Errorf("the object store %s: %w", bucketContent, err)
	}
	b.created, err = b.identity(ctx)
	return b, err
}

// openKV opens a key-value bucket, or makes it. A bucket with a ttl is in memory: it has
// nothing that would have to survive.
func openKV(ctx context.Context, js jetstream.JetStream, name string, history int64, ttl time.Duration) (jetstream.KeyValue, error) {
	kv, err := js.KeyValue(ctx, name)
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return kv, err
	}
	storage := jetstream.FileStorage
	if ttl > 0 {
		storage = jetstream.MemoryStorage
	}
	_, err = replicated(func(n int) (jetstream.Stream, error) {
		return js.CreateStream(ctx, jetstream.StreamConfig{
			// As CreateKeyValue does it, but for FirstSeq: revisions of a bucket that was lost
			// never mean something else in the one that takes its place.
			Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, FirstSeq: uint64(time.Now().UnixMilli()),
			MaxMsgsPerSubject: history, MaxAge: ttl, MaxMsgSize: maxValue + 4<<10, MaxBytes: -1, MaxMsgs: -1, MaxConsumers: -1,
			Storage: storage, Replicas: n, Discard: jetstream.DiscardNew, Duplicates: duplicates(ttl),
			AllowRollup: true, DenyDelete: true, AllowDirect: true,
		})
	})
	if err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another member was faster
		return nil, err
	}
	return js.KeyValue(ctx, name)
}

// duplicates returns the time in which a server recognises a repeated message.
func duplicates(ttl time.Duration) time.Duration {
	const most = 2 * time.Minute
	if ttl > 0 {
		return min(ttl, most)
	}
	return most
}

// replicated makes a bucket on three servers, or on one if there are not so many.
func replicated[T any](create func(replicas int) (T, error)) (T, error) {
	made, err := create(replicas)
	var api *jetstream.APIError
	if errors.As(err, &api) && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return create(1)
	}
	return made, err
}

// identity returns when the bucket of lists was made.
func (b *buckets) identity(ctx context.Context) (time.Time, error) {
	info, err := b.info(ctx, "KV_"+bucketLists)
	if err != nil {
		return time.Time{}, err
	}
	return info.Created, nil
}

func (b *buckets) info(ctx context.Context, stream string) (*jetstream.StreamInfo, error) {
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// streams are those of all buckets.
var streams = []string{"KV_" + bucketLists, "KV_" + bucketState, "KV_" + bucketMembers, "KV_" + bucketLeases, "OBJ_" + bucketContent}

// spread puts buckets that are on one server on three, once there are so many.
func (b *buckets) spread(ctx context.Context) {
	for _, name := range streams {
		info, err := b.info(ctx, name)
		if err != nil || info.Cluster == nil || info.Cluster.Name == "" || info.Config.Replicas >= replicas {
			continue
		}
		config := info.Config
		config.Replicas = replicas
		_, _ = b.js.UpdateStream(ctx, config) // fails with fewer servers
	}
}
