package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"

	"spamgate/internal/atomicfile"
	"spamgate/internal/delta"
)

// A content can be obtained in several ways: by the deltas from the file that the gate has, by
// the snapshot and all deltas, or as a whole, if somebody has stored that.

// way is one of them.
type way struct {
	// prepare, if not nil, receives what write needs. The caller calls done at the end.
	prepare func(ctx context.Context) (done func(), err error)

	// write writes the content to w. Its digest is not checked.
	write func(ctx context.Context, w io.Writer) error
}

// attempt calls use with the way. A placeError says that another way would not help.
func (w *way) attempt(ctx context.Context, use func(context.Context, *way) error) error {
	if w.prepare == nil {
		return use(ctx, w)
	}
	done, err := w.prepare(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err = use(ctx, w); err != nil && !errors.Is(err, errContent) {
		err = &placeError{err}
	}
	return err
}

// placeError says that a content cannot be written to its place.
type placeError struct{ error }

func (e *placeError) Unwrap() error { return e.error }

// obtaining is the attempt to get the content of a version.
type obtaining struct {
	m    *Member
	b    *buckets
	v    *Version
	most int64 // bytes that any file may have
}

// obtain calls use with one way after the other, until one leads to the content of v. Own is the
// list's file, and ownSHA its digest; nil if there is none.
func (m *Member) obtain(ctx context.Context, b *buckets, v *Version, own io.ReadSeeker, ownSHA string, most int64, use func(context.Context, *way) error) error {
	ctx, cancel := context.WithTimeout(ctx, 6*m.transferTime(v.Size))
	defer cancel()
	if v.Size > most {
		return fmt.Errorf("it has %d bytes, more than max_bytes = %d", v.Size, most)
	}
	o := &obtaining{m, b, v, most}
	var errs []error
	for _, w := range o.ways(own, ownSHA) {
		err := w.attempt(ctx, use)
		if err == nil || errors.As(err, new(*placeError)) {
			return err
		}
		errs = append(errs, err)
	}
	m.sayMissing()
	return errors.Join(errs...)
}

// load returns a file with the content of v, read from its begin; see obtain.
func (m *Member) load(ctx context.Context, b *buckets, v *Version, own io.ReadSeeker, ownSHA string, most int64) (file *atomicfile.File, err error) {
	err = m.obtain(ctx, b, v, own, ownSHA, most, func(ctx context.Context, w *way) (err error) {
		file, err = m.spool(v.SHA256, func(to io.Writer) error { return w.write(ctx, to) })
		return err
	})
	return file, err
}

// ways returns the ways, the cheapest first.
func (o *obtaining) ways(own io.ReadSeeker, ownSHA string) (ways []*way) {
	deltas := o.v.Deltas
	if i := slices.IndexFunc(deltas, func(d DeltaName) bool { return d.From == ownSHA }); own != nil && i >= 0 {
		ways = append(ways, o.byDeltas(deltas[i:], func(context.Context) (io.ReadSeeker, func(), error) { return own, func() {}, nil }))
	}
	if len(deltas) > 0 {
		ways = append(ways, o.byDeltas(deltas, o.snapshot))
	}
	return append(ways, &way{write: func(ctx context.Context, w io.Writer) error { return o.unpack(ctx, w, o.v.SHA256, o.v.Size) }})
}

// byDeltas returns the way by deltas from a base.
func (o *obtaining) byDeltas(deltas []DeltaName, base func(context.Context) (io.ReadSeeker, func(), error)) *way {
	f := &following{obtaining: o}
	return &way{
		prepare: func(ctx context.Context) (func(), error) {
			from, done, err := base(ctx)
			if err != nil {
				return nil, err
			}
			all := func() { f.discard(); done() }
			if err := f.follow(ctx, from, deltas); err != nil {
				all()
				return nil, err
			}
			return all, nil
		},
		write: func(_ context.Context, w io.Writer) error { return f.chain.Write(w, f.base) },
	}
}

// snapshot receives the snapshot.
func (o *obtaining) snapshot(ctx context.Context) (io.ReadSeeker, func(), error) {
	file, err := o.m.temporary()
	if err != nil {
		return nil, nil, err
	}
	if err := o.unpack(ctx, file, o.v.Snapshot, o.most); err != nil {
		file.Discard()
		return nil, nil, err
	}
	return file, file.Discard, nil
}

// unpack receives a whole content of at most most bytes.
func (o *obtaining) unpack(ctx context.Context, w io.Writer, sha string, most int64) error {
	packed, err := o.m.get(ctx, o.b, o.v, fullName(sha), maxPacked(most))
	if err != nil {
		return err
	}
	defer packed.Close()
	z, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
	if err != nil {
		return err
	}
	defer z.Close()
	_, err = io.Copy(w, &limited{z, most})
	return err
}

// following makes a content by deltas.
type following struct {
	*obtaining
	base      io.ReadSeeker
	chain     *delta.Chain
	temporary []*atomicfile.File
}

// follow applies deltas to a base.
func (f *following) follow(ctx context.Context, base io.ReadSeeker, deltas []DeltaName) error {
	if err := f.begin(base, deltas[0].From); err != nil {
		return err
	}
	for _, d := range deltas {
		if err := f.add(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// begin begins with a base, which has a digest.
func (f *following) begin(base io.ReadSeeker, sha string) error {
	size, err := base.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	sum, err := hex.DecodeString(sha)
	if err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("%w: no digest", errContent)
	}
	scratch, err := f.m.temporary()
	if err != nil {
		return err
	}
	f.temporary = append(f.temporary, scratch)
	f.base, f.chain = base, delta.NewChain(size, [sha256.Size]byte(sum), scratch)
	return nil
}

// add adds a delta. If the chain is too long its file is made, and that is the new base.
func (f *following) add(ctx context.Context, d DeltaName) error {
	err := f.receive(ctx, d, func(r io.Reader) error { return f.chain.Add(r, f.most) })
	if !errors.Is(err, delta.ErrLong) {
		return err
	}
	before, err := f.m.spool(d.From, func(w io.Writer) error { return f.chain.Write(w, f.base) })
	f.discard()
	if err != nil {
		return err
	}
	defer before.Discard()
	next, err := f.m.spool(d.To, func(w io.Writer) error {
		return f.receive(ctx, d, func(r io.Reader) error { return delta.Apply(w, before, r, f.most) })
	})
	if err != nil {
		return err
	}
	f.temporary = append(f.temporary, next)
	return f.begin(next, d.To)
}

// receive calls use with a delta.
func (f *following) receive(ctx context.Context, d DeltaName, use func(io.Reader) error) error {
	change, err := f.m.get(ctx, f.b, f.v, deltaName(d.From, d.To), d.Size)
	if err != nil {
		return err
	}
	defer change.Close()
	return use(change)
}

func (f *following) discard() {
	for _, file := range f.temporary {
		file.Discard()
	}
	f.temporary = nil
}

// temporary returns an empty file, which its caller discards.
func (m *Member) temporary() (*atomicfile.File, error) {
	return m.tree.CreateUnnamed(workDir, newFile, 0o600)
}

// spool returns a file with what write writes, which must have the digest.
func (m *Member) spool(sha string, write func(io.Writer) error) (*atomicfile.File, error) {
	file, err := m.temporary()
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	err = write(io.MultiWriter(file, sum))
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != sha {
		err = fmt.Errorf("%w: it has another digest", errContent)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		file.Discard()
		return nil, err
	}
	return file, nil
}
