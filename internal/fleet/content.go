package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/delta"
)

// fullName and deltaName name the objects of contents.
func fullName(sha string) string       { return "full." + sha }
func deltaName(from, to string) string { return "delta." + from + "." + to }

// names returns the objects that a version needs.
func (v *Version) names() []string {
	names := []string{fullName(v.Snapshot)}
	for _, d := range v.Deltas {
		names = append(names, deltaName(d.From, d.To))
	}
	return names
}

// Deltas are worth their while only for content that is longer than this, in bytes.
const minDelta = 64 << 10

// transferTime bounds a transfer of size bytes.
func (m *Member) transferTime(size int64) time.Duration {
	return m.o.times.edit + time.Duration(size>>19)*time.Second // half a MiB a second
}

// store stores the content of v, whose digest and size are set, and sets how it is stored.
// Before is the version before it, and old its content; nil if the delta does not matter.
func (m *Member) store(ctx context.Context, b *buckets, v, before *Version, old, content io.ReadSeeker) error {
	v.Inline = nil
	if before != nil && old != nil && v.Size >= minDelta && len(before.Deltas) < maxDeltas && before.SHA256 != v.SHA256 {
		ok, err := m.storeDelta(ctx, b, v, before, old, content)
		if ok || err != nil {
			return err
		}
	}
	v.Snapshot, v.Deltas = v.SHA256, nil
	if v.Size < maxPackedInline {
		return m.storeSmall(ctx, b, v, content)
	}
	size, err := m.storeFull(ctx, b, v.SHA256, content)
	v.SnapshotSize = size
	return err
}

// storeDelta stores v as a delta, if that is smaller than storing the whole now and then.
func (m *Member) storeDelta(ctx context.Context, b *buckets, v, before *Version, old, content io.ReadSeeker) (ok bool, err error) {
	file, err := m.temporary()
	if err != nil {
		return false, err
	}
	defer file.Discard()
	if _, err := delta.Write(file, old, content); err != nil {
		return false, fmt.Errorf("comparing with the version before: %w", err)
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || before.deltaBytes()+size > before.SnapshotSize/4 {
		return false, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	name := deltaName(before.SHA256, v.SHA256)
	v.Inline = maps.Clone(before.Inline)
	if size <= maxInline && v.inlineBytes()+size <= maxInlineAll {
		change, err := io.ReadAll(file)
		if err != nil {
			return false, err
		}
		v.putInline(name, change)
	} else if err := m.put(ctx, b, name, file); err != nil {
		return false, err
	}
	v.Snapshot, v.SnapshotSize = before.Snapshot, before.SnapshotSize
	v.Deltas = append(slices.Clone(before.Deltas), DeltaName{before.SHA256, v.SHA256, size})
	return true, nil
}

func (v *Version) putInline(name string, object []byte) {
	if v.Inline == nil {
		v.Inline = map[string][]byte{}
	}
	v.Inline[name] = object
}

// inlineBytes returns the size of what is inline.
func (v *Version) inlineBytes() (n int64) {
	for _, object := range v.Inline {
		n += int64(len(object))
	}
	return n
}

// maxPackedInline bounds the contents that are packed in memory, to see whether they are small
// then, in bytes.
const maxPackedInline = 256 << 10

// storeSmall stores a whole content in its version, if it is small when packed.
func (m *Member) storeSmall(ctx context.Context, b *buckets, v *Version, content io.ReadSeeker) error {
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := packInto(&packed, content); err != nil {
		return err
	}
	v.SnapshotSize = int64(packed.Len())
	if packed.Len() <= maxInline {
		v.putInline(fullName(v.SHA256), packed.Bytes())
		return nil
	}
	return m.put(ctx, b, fullName(v.SHA256), &packed)
}

// storeFull stores a whole content, packed, unless the fleet has it. It returns its size there.
func (m *Member) storeFull(ctx context.Context, b *buckets, sha string, content io.ReadSeeker) (int64, error) {
	name := fullName(sha)
	info, err := b.content.GetInfo(ctx, name)
	if err == nil && m.age(info.ModTime) < m.o.times.orphan/2 { // else it may be removed at any moment
		return int64(info.Size), nil
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	packed, pack := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = pack.CloseWithError(packInto(pack, content))
	}()
	count := &countingReader{r: packed}
	err = m.put(ctx, b, name, count)
	_ = packed.CloseWithError(errors.New("not stored"))
	<-done
	return count.n, err
}

func packInto(w io.Writer, content io.Reader) error {
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	if _, err := io.Copy(z, content); err != nil {
		_ = z.Close()
		return err
	}
	return z.Close()
}

type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// put stores an object. When it returns the servers have it.
func (m *Member) put(ctx context.Context, b *buckets, name string, content io.Reader) error {
	_, err := b.content.Put(ctx, jetstream.ObjectMeta{Name: name}, content)
	if err != nil {
		err = fmt.Errorf("storing %s: %w", name, err)
	}
	return err
}

// errContent says that the fleet does not have the content that it should have.
var errContent = errors.New("the fleet does not have its content")

// get opens an object of a version, of at most most bytes. The caller closes it.
func (m *Member) get(ctx context.Context, b *buckets, v *Version, name string, most int64) (io.ReadCloser, error) {
	if object, ok := v.Inline[name]; ok {
		return io.NopCloser(&limited{bytes.NewReader(object), most}), nil
	}
	if b.reads != nil {
		object, err := b.reads.object(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		return io.NopCloser(&limited{object, most}), nil
	}
	linked := m.whileLinked(ctx)
	late := time.AfterFunc(2*m.o.times.edit, linked.end) // an object may be a link to itself
	object, err := b.content.Get(watchful{linked}, name)
	inTime := late.Stop()
	there := linked.outlive() // from here on the library goes on by itself on the next connection
	if err == nil && !(inTime && there) {
		_ = object.Close()
		if err = errLost; !inTime {
			err = context.DeadlineExceeded
		}
	}
	switch {
	case errors.Is(err, jetstream.ErrObjectNotFound):
		linked.end()
		return nil, fmt.Errorf("%w: %s is missing", errContent, name)
	case err != nil:
		linked.end()
		return nil, fmt.Errorf("reading %s: %w", name, linked.lost(err))
	}
	return &received{&limited{object, most}, object, linked.end}, nil
}

// watchful is a context whose deadline is always near. A read from an object waits until the
// deadline, and only then looks whether the context has ended.
type watchful struct{ context.Context }

func (watchful) Deadline() (time.Time, bool) { return time.Now().Add(time.Second), true }

// received is an object that is being received.
type received struct {
	io.Reader
	object io.Closer
	stop   context.CancelFunc
}

func (r *received) Close() error {
	defer r.stop()
	return r.object.Close()
}

// limited is a reader that fails after n bytes.
type limited struct {
	r io.Reader
	n int64
}

func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.n+1 {
		p = p[:l.n+1]
	}
	n, err := l.r.Read(p)
	if l.n -= int64(n); l.n < 0 {
		return 0, fmt.Errorf("%w: it is longer than it should be", errContent)
	}
	return n, err
}

// maxPacked is how much larger than a file its packed form may be.
func maxPacked(size int64) int64 { return size + size/64 + 64<<10 }
