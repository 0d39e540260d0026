package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
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

// buckets are the open buckets that lists need.
type buckets struct {
	*link
	js           jetstream.JetStream
	lists, state jetstream.KeyValue
	content      jetstream.ObjectStore
	streams      map[string]jetstream.Stream // of lists and state, by the name of the bucket
	created      map[string]time.Time        // by the name of the stream
	reads        *reader                     // in place of all that: the gate only reads
	first        uint64                      // revision that lists can have: those of a lost bucket are less

	mu   sync.Mutex
	side map[string]jetstream.KeyValue // the others, by name
}

// openBuckets opens the buckets, and makes those that are missing.
func (m *link) openBuckets(ctx context.Context) (*buckets, error) {
	js, err := jetstream.New(m.nc, jetstream.WithDefaultTimeout(m.o.times.edit))
	if err != nil {
		return nil, err
	}
	b := &buckets{link: m, js: js, streams: map[string]jetstream.Stream{}, side: map[string]jetstream.KeyValue{}}
	if b.lists, err = m.openKV(ctx, js, bucketLists, historyOf, 0); err != nil {
		return nil, err
	}
	if b.state, err = m.openKV(ctx, js, bucketState, 1, 0); err != nil {
		return nil, err
	}
	if b.content, err = m.openContent(ctx, js); err != nil {
		return nil, err
	}
	for _, name := range []string{bucketLists, bucketState} {
		if b.streams[name], err = js.Stream(ctx, "KV_"+name); err != nil {
			return nil, fmt.Errorf("the bucket %s: %w", name, err)
		}
	}
	b.first = b.streams[bucketLists].CachedInfo().Config.FirstSeq
	b.created, err = b.identities(ctx)
	return b, err
}

// last returns what a bucket has for a key. The value is nil if there is none, or if it was
// deleted: then the mark of that has a revision, which KeyValue.Get does not tell, and without
// which nothing can follow it.
func (b *buckets) last(ctx context.Context, bucket, key string) (value []byte, revision uint64, err error) {
	if b.reads != nil {
		return b.reads.last(ctx, key) // what else it needs it does not ask for
	}
	msg, err := b.streams[bucket].GetLastMsgForSubject(ctx, "$KV."+bucket+"."+key)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	case msg.Header.Get("KV-Operation") != "" || msg.Header.Get(jetstream.MarkerReasonHeader) != "":
		return nil, msg.Sequence, nil
	}
	return append([]byte{}, msg.Data...), msg.Sequence, nil
}

// history returns the values of a list's key that the fleet has, the newest ones last.
func (b *buckets) history(ctx context.Context, key string) (values []readValue, err error) {
	if b.reads != nil {
		return b.reads.history(ctx, key)
	}
	entries, err := b.lists.History(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, nil
	}
	for _, e := range entries {
		values = append(values, readValue{key, e.Value(), e.Revision()})
	}
	return values, err
}

// openSide opens a bucket that lists do not need.
func (b *buckets) openSide(ctx context.Context, name string, ttl time.Duration) (jetstream.KeyValue, error) {
	b.mu.Lock()
	kv := b.side[name]
	b.mu.Unlock()
	if kv != nil {
		return kv, nil
	}
	kv, err := b.openKV(ctx, b.js, name, 1, ttl)
	if err == nil {
		b.mu.Lock()
		b.side[name] = kv
		b.mu.Unlock()
	}
	return kv, err
}

// members and leases open the buckets of these names.
func (b *buckets) members(ctx context.Context) (jetstream.KeyValue, error) {
	return b.openSide(ctx, bucketMembers, 4*b.o.times.presence)
}

func (b *buckets) leaseBucket(ctx context.Context) (jetstream.KeyValue, error) {
	return b.openSide(ctx, bucketLeases, b.o.times.lease)
}

// closeSide lets a bucket be opened again, after an error that is not about a key.
func (b *buckets) closeSide(name string, err error) {
	if err == nil || errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.side, name)
}

// brief returns a context for a question that servers with a quorum answer at once.
func (m *core) brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, m.o.times.edit/5)
}

func (m *link) openContent(ctx context.Context, js jetstream.JetStream) (jetstream.ObjectStore, error) {
	brief, cancel := m.brief(ctx)
	defer cancel()
	content, err := js.ObjectStore(brief, bucketContent)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		content, err = replicated(func(n int) (jetstream.ObjectStore, error) {
			return js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: bucketContent, Replicas: n})
		})
	}
	if errors.Is(err, jetstream.ErrBucketExists) { // another member was faster
		content, err = js.ObjectStore(ctx, bucketContent)
	}
	if err != nil {
		return nil, fmt.Errorf("the object store %s: %w", bucketContent, err)
	}
	return content, nil
}

// openKV opens a key-value bucket, or makes it. A bucket with a ttl is in memory: it has
// nothing that would have to survive.
func (m *link) openKV(ctx context.Context, js jetstream.JetStream, name string, history int64, ttl time.Duration) (kv jetstream.KeyValue, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the bucket %s: %w", name, err)
		}
	}()
	brief, cancel := m.brief(ctx)
	defer cancel()
	kv, err = js.KeyValue(brief, name)
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return kv, err
	}
	storage := jetstream.FileStorage
	if ttl > 0 {
		// A server that was restarted has lost it. A gate that only reads leaves it to the others.
		// The other buckets come before the probe, which needs one of them.
		if _ = m.wait(brief, m.knowsRights); !m.mayWrite() {
			return nil, err
		}
		storage = jetstream.MemoryStorage
	}
	_, err = replicated(func(n int) (jetstream.Stream, error) {
		return js.CreateStream(ctx, jetstream.StreamConfig{
			// As CreateKeyValue does it, but for FirstSeq: revisions of a bucket that was lost
			// never mean something else in the one that takes its place.
			Name: "KV_" + name, Subjects: []string{"$KV." + name + ".>"}, FirstSeq: uint64(time.Now().UnixMilli()),
			MaxMsgsPerSubject: history, MaxAge: ttl, MaxMsgSize: maxValue + 4<<10, MaxMsgs: maxValues, MaxBytes: -1 /* a server sets it aside */, MaxConsumers: -1,
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

// identities returns when the buckets were made, and notes the servers that have them.
func (b *buckets) identities(ctx context.Context) (map[string]time.Time, error) {
	ctx, cancel := b.brief(ctx)
	defer cancel()
	created := map[string]time.Time{}
	for _, name := range streams[:3] {
		info, err := b.info(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("the stream %s: %w", name, err)
		}
		created[name] = info.Created
		if name == streams[0] {
			b.link.mu.Lock()
			b.servers = serversOf(info)
			b.link.mu.Unlock()
		}
	}
	return created, nil
}

func (b *buckets) info(ctx context.Context, stream string) (*jetstream.StreamInfo, error) {
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// newestRevision returns the revision of a key that the leader of its servers has, 0 if it has none.
// Others may lag behind.
func (m *link) newestRevision(ctx context.Context, bucket, key string) (uint64, error) {
	question := fmt.Sprintf(`{"last_by_subj":"$KV.%s.%s"}`, bucket, key)
	reply, err := m.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET.KV_"+bucket, []byte(question))
	if err != nil {
		return 0, err
	}
	var answer struct {
		Message struct{ Seq uint64 } `json:"message"`
		Error   struct {
			Code jetstream.ErrorCode `json:"err_code"`
		} `json:"error"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil || answer.Message.Seq == 0 && answer.Error.Code != jetstream.JSErrCodeMessageNotFound {
		return 0, fmt.Errorf("the newest revision of %s: %.200q", key, reply.Data)
	}
	return answer.Message.Seq, nil
}

// streams are those of all buckets: first those that lists need.
var streams = []string{"KV_" + bucketLists, "KV_" + bucketState, "OBJ_" + bucketContent, "KV_" + bucketMembers, "KV_" + bucketLeases}

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
