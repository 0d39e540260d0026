package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/nats-io/nats.go/jetstream"

	"spamgate/internal/rcs"
)

// fullName names the object with a whole content.
func fullName(sha string) string { return "full." + sha }

const (
	// minEdit is the size of a content, in bytes, from which on an edit is worth its while.
	minEdit = 64 << 10

	maxScript = 1 << 20  // of an edit, in bytes
	maxEdit   = 64 << 10 // the same, packed

	// maxSince bounds the edits since the last version that was stored as a whole, of which each
	// counts as edits of leastEdit bytes at least: 32 edits, which are all in the history of the key
	// (historyOf), and in the answer to a gate that only reads (maxRead).
	maxSince, leastEdit = 256 << 10, 8 << 10
	maxEdits            = maxSince / leastEdit
)

// transferTime bounds a transfer of size bytes.
func (m *core) transferTime(size int64) time.Duration {
	return m.o.times.edit + time.Duration(size>>19)*time.Second // half a MiB a second
}

// store stores the content of v, whose digest and size are set, and sets how it is stored.
// Before is the version before it, and old its content; nil if there is to be no edit.
func (b *buckets) store(ctx context.Context, v, before *Version, old, content io.ReadSeeker) error {
	v.Snapshot, v.Inline, v.Edit, v.Whole, v.Since = v.SHA256, nil, nil, "", 0
	if before != nil && old != nil && v.Size >= minEdit {
		if ok, err := v.setEdit(before, old, content); ok || err != nil {
			return err
		}
	}
	if v.Size < maxPackedInline {
		return b.storeSmall(ctx, v, content)
	}
	return b.storeFull(ctx, v.SHA256, content)
}

// setEdit makes v an edit of the version before it, unless it is time to store the whole. The edit
// reaches who has that version; others go through the edits since the last whole content.
func (v *Version) setEdit(before *Version, old, content io.ReadSeeker) (ok bool, err error) {
	if before.SHA256 != v.Base || before.SHA256 == v.SHA256 || before.Snapshot != before.SHA256 {
		return false, nil
	}
	for _, text := range []io.Seeker{old, content} {
		if _, err := text.Seek(0, io.SeekStart); err != nil {
			return false, err
		}
	}
	script, err := rcs.Diff(old, content, maxScript)
	if err != nil {
		if errors.Is(err, rcs.ErrLarge) || errors.Is(err, rcs.ErrLines) {
			err = nil
		}
		return false, err
	}
	var packed bytes.Buffer
	if err := packInto(&packed, bytes.NewReader(script)); err != nil {
		return false, err
	}
	since := before.Since + max(leastEdit, int64(packed.Len()))
	if packed.Len() > maxEdit || since > maxSince {
		return false, nil
	}
	v.Edit, v.Whole, v.Since = packed.Bytes(), cmp.Or(before.Whole, before.SHA256), since
	return true, nil
}

// maxPackedInline bounds the contents that are packed in memory, to see whether they are small
// then, in bytes.
const maxPackedInline = 256 << 10

// storeSmall stores a whole content in its version, if it is small when packed.
func (b *buckets) storeSmall(ctx context.Context, v *Version, content io.ReadSeeker) error {
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := packInto(&packed, content); err != nil {
		return err
	}
	if packed.Len() <= maxInline {
		v.Inline = map[string][]byte{fullName(v.SHA256): packed.Bytes()}
		return nil
	}
	if b.keeps(ctx, fullName(v.SHA256)) {
		return nil
	}
	return b.put(ctx, fullName(v.SHA256), &packed)
}

// keeps reports whether the fleet has an object, and does not remove it soon.
func (b *buckets) keeps(ctx context.Context, name string) bool {
	info, err := b.content.GetInfo(ctx, name)
	return err == nil && b.age(info.ModTime) < b.o.times.orphan/2
}

// storeFull stores a whole content, packed, unless the fleet has it.
func (b *buckets) storeFull(ctx context.Context, sha string, content io.ReadSeeker) error {
	name := fullName(sha)
	if b.keeps(ctx, name) {
		return nil
	}
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	packed, pack := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = pack.CloseWithError(packInto(pack, content))
	}()
	err := b.put(ctx, name, packed)
	_ = packed.CloseWithError(errors.New("not stored"))
	<-done
	return err
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

// put stores an object. When it returns the servers have it.
func (b *buckets) put(ctx context.Context, name string, content io.Reader) error {
	_, err := b.content.Put(ctx, jetstream.ObjectMeta{Name: name}, content)
	if err != nil {
		err = fmt.Errorf("storing %s: %w", name, err)
	}
	return err
}

// errContent says that the fleet does not have the content that it should have.
var errContent = errors.New("the fleet does not have its content")

// get opens the packed whole content of a version, of at most most bytes. The caller closes it.
func (b *buckets) get(ctx context.Context, v *Version, most int64) (io.ReadCloser, error) {
	name := fullName(v.SHA256)
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
	linked := b.whileLinked(ctx)
	late := time.AfterFunc(2*b.o.times.edit, linked.end) // an object may be a link to itself
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
