package store

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"hash"
	"io"
	"io/fs"
	"time"
)

// Why a list is not loaded, apart from the errors of the file system and of
// package listfile. Use errors.Is.
var (
	ErrNotRegular = errors.New("not a regular file")
	ErrChanged    = errors.New("changed while it was read")
)

// stamp identifies what a file held when it was looked at.
type stamp struct {
	Path string
	attributes
	Digest digest    // of the content; zero if the file was not read to its end
	Looked time.Time // when it was looked at
}

// digest is a SHA-256. In JSON it is base64.
type digest [sha256.Size]byte

// MarshalText returns the digest in base64.
func (d digest) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, d[:]), nil
}

// UnmarshalText parses what MarshalText returns.
func (d *digest) UnmarshalText(text []byte) error {
	b, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil || copy(d[:], b) != len(d) || len(b) != len(d) {
		return errors.New("not a digest")
	}
	return nil
}

// attributes show cheaply that a file has changed. Times are nanoseconds since 1970. The change
// time is among them because programs set the modification time back; nothing sets the change
// time.
type attributes struct {
	Device, Inode    uint64
	Size             int64
	Modified, Change int64
}

// racyFor is how long after a change the attributes may fail to show the next one: a file may be
// written twice in one tick of its file system's clock, which is 10 ms on ext4 and 2 s on
// FAT.
const racyFor = 2 * time.Second

// racy reports whether the file may have changed since without a trace in its attributes. So may
// one that was changed in the future, if clocks disagree.
func (s stamp) racy() bool { return age(s.Change, s.Looked) < racyFor }

func age(nanoseconds int64, now time.Time) time.Duration {
	return now.Sub(time.Unix(0, nanoseconds))
}

// sameAttributes reports whether the files look as they did. That means the same content unless
// the stamps are racy.
func sameAttributes(a, b []stamp) bool {
	return equalStamps(a, b, func(p, q *stamp) bool { return p.attributes == q.attributes })
}

// sameContent reports whether the files hold what they did. It is not known of files that were not
// read to their end.
func sameContent(a, b []stamp) bool {
	return equalStamps(a, b, func(p, q *stamp) bool { return p.Digest == q.Digest && p.Digest != [sha256.Size]byte{} })
}

func equalStamps(a, b []stamp, same func(p, q *stamp) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Path != b[i].Path || !same(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

// statFiles returns stamps with the files' attributes.
func (o Opener) statFiles(paths []string) ([]stamp, error) {
	stamps := make([]stamp, len(paths))
	for i, path := range paths {
		looked := time.Now()
		info, err := o.Stat(path)
		if err != nil {
			return nil, err
		}
		stamps[i] = stamp{Path: path, attributes: attributesOf(info), Looked: looked}
	}
	return stamps, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	default:
		return "device"
	}
}

// readStamped reads a file to its end and returns the stamp of what was read. Use, which may be
// nil, gets the content; if it fails that is the error. A file whose attributes change
// meanwhile, by being written or replaced, is an ErrChanged.
func (o Opener) readStamped(ctx context.Context, path string, use func(io.Reader) error) (stamp, error) {
	s := stamp{Path: path, Looked: time.Now()}
	f, err := o.Open(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return s, err
	}
	s.attributes = attributesOf(before)
	content := &hashedReader{ctx: ctx, from: io.LimitReader(f, s.Size), hash: sha256.New()}
	if use != nil {
		if err := use(content); err != nil {
			return s, err
		}
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return s, err
	}
	after, err := f.Stat()
	if err != nil {
		return s, err
	}
	if attributesOf(after) != s.attributes || content.n != s.Size {
		return s, &fs.PathError{Op: "read", Path: path, Err: ErrChanged}
	}
	content.hash.Sum(s.Digest[:0])
	return s, nil
}

// hashedReader hashes what is read, and stops when its context ends.
type hashedReader struct {
	ctx  context.Context
	from io.Reader
	hash hash.Hash
	n    int64
}

func (r *hashedReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	n, err := r.from.Read(p)
	r.hash.Write(p[:n])
	r.n += int64(n)
	return n, err
}
