package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/minio/highwayhash"
)

// fromBytes makes a segment of a file's content.
func fromBytes(data []byte) (*Segment, error) {
	s := &Segment{data: data, key: &testKey}
	return s, s.load()
}

// smallEntries returns one entry of each sort.
func smallEntries() []Entry {
	return []Entry{
		{Key: "one.example", Kind: 2, Line: 1, Reason: "spam", Note: "seen on Monday"},
		{Key: "two.example", Kind: 2, Line: 2, Reason: "spam", Note: "seen on Monday"},
		{Key: "@three.example", Kind: 1, Exception: true, Line: 300, File: 200},
		{Key: "four@", Kind: 4, Defer: true, Until: 1_800_000_000, Line: 4},
		{Key: "five.example", Line: 5, Reason: strings.Repeat("stands in the record ", 60)},
		{For: "ann@example.net", Key: "six.example", Kind: 2, Line: 6, Reason: "spam"},
	}
}

// isFault tells whether an error is one of those for files that are of no use.
func isFault(err error) bool {
	return errors.Is(err, ErrDamaged) || errors.Is(err, ErrFormat) || errors.Is(err, ErrKey)
}

func TestEveryByteFlipped(t *testing.T) {
	entries := smallEntries()
	data := bytes.Clone(build(t, "", BuildOptions{}, 1, entries).data)
	for pos := range data {
		for _, flip := range []byte{1, 0x80, 0xff} {
			data[pos] ^= flip
			s, err := fromBytes(data)
			if err == nil {
				lookups(t, s, entries, pos)
				err = s.Verify(t.Context())
			}
			if !isFault(err) {
				t.Errorf("byte %d of %d ^ %#x: %v", pos, len(data), flip, err)
			}
			data[pos] ^= flip
		}
	}
}

// lookups fails where a lookup gives a wrong answer and no error.
func lookups(t *testing.T, s *Segment, entries []Entry, pos int) {
	for _, e := range entries {
		got, ok, err := s.Lookup(testKey.Hash([]byte(e.Indexed())), []byte(e.Indexed()))
		if err != nil && !errors.Is(err, ErrDamaged) || err == nil && (!ok || got != e) {
			t.Fatalf("byte %d: Lookup(%q) = %v, %v, %v", pos, e.Key, got, ok, err)
		}
		if ok, err := s.Has(testKey.Hash([]byte(e.Indexed())), []byte(e.Indexed())); err != nil && !errors.Is(err, ErrDamaged) || err == nil && !ok {
			t.Fatalf("byte %d: Has(%q) = %v, %v", pos, e.Key, ok, err)
		}
	}
}

func TestEveryLength(t *testing.T) {
	whole := build(t, "", BuildOptions{}, 1, smallEntries()).data
	path := filepath.Join(t.TempDir(), "list.seg")
	for size := range len(whole) {
		if _, err := fromBytes(whole[:size]); !isFault(err) {
			t.Errorf("%d of %d bytes: %v", size, len(whole), err)
		}
		if size%97 != 0 {
			continue
		}
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := mapPath(path, &testKey); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
			t.Errorf("a file of %d of %d bytes: %v", size, len(whole), err)
		}
	}
	if _, err := fromBytes(append(bytes.Clone(whole), 0)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte too many: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.seg")
	build(t, good, BuildOptions{}, 1, smallEntries())
	older := filepath.Join(dir, "older.seg")
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(data[atVersion:], version-1)
	if err := os.WriteFile(older, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		key        Key
		want       error
	}{
		{"older format", older, testKey, ErrFormat},
		{"another key", good, Key{9}, ErrKey},
		{"a directory", dir, testKey, ErrDamaged},
		{"missing", filepath.Join(dir, "none.seg"), testKey, fs.ErrNotExist},
	} {
		if _, err := mapPath(c.path, &c.key); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

// repair makes every checksum match, as far as the parts of data can be told.
func repair(data []byte) bool {
	if len(data) < headerSize {
		return false
	}
	copy(data, magic)
	binary.LittleEndian.PutUint32(data[atVersion:], version)
	binary.LittleEndian.PutUint32(data[atHeaderSize:], headerSize)
	binary.LittleEndian.PutUint64(data[atKeyCheck:], testKey.check())
	size := uint64(len(data))
	binary.LittleEndian.PutUint64(data[atFileSize:], size)
	field := func(pos int) uint64 { return binary.LittleEndian.Uint64(data[pos:]) }
	meta := min(field(atMetaSize), size-headerSize)
	sum := headerChecksum(data[:headerSize], data[size-meta:])
	copy(data[atChecksum:], sum[:])
	h, err := decodeHeader(data)
	if err != nil {
		return false
	}
	blocks := data[headerSize:][:h.blockBytes]
	comments := data[headerSize+h.blockBytes:][:h.sharedSize]
	table := data[headerSize+h.blockBytes+h.sharedSize:]
	firsts, places := table[:8*h.blockCount], table[8*h.blockCount:][:placeSize*h.blockCount]
	for i := range int(h.blockCount) {
		p := placeAt(places, i)
		end := uint64(len(blocks))
		if i+1 < int(h.blockCount) {
			end = placeAt(places, i+1).offset
		}
		if p.offset <= end && end <= uint64(len(blocks)) {
			p.checksum = highwayhash.Sum64(blocks[p.offset:end], testKey[:])
			p.appendTo(places[:placeSize*i])
		}
	}
	h.digest = digest(&testKey, data[atEntries:atMetaSize], comments, firsts, places)
	copy(data[atDigest:], h.digest[:])
	sum = headerChecksum(data[:headerSize], data[size-meta:])
	copy(data[atChecksum:], sum[:])
	return true
}

// useAll calls everything that reads a segment.
func useAll(s *Segment) {
	for _, e := range smallEntries() {
		s.Lookup(testKey.Hash([]byte(e.Indexed())), []byte(e.Indexed()))
	}
	n := 0
	s.Records(func(Record) bool { n++; return n < 1e5 })
	s.Scan(1<<62, 1<<63, func(uint64, []byte) bool { n++; return n < 2e5 })
	s.Verify(context.Background())
}

// TestLies changes each byte of a segment and makes the checksums match: nothing
// that a file says may lead outside of it.
func TestLies(t *testing.T) {
	whole := build(t, "", BuildOptions{}, 1, smallEntries()).data
	opened := 0
	for pos := range whole {
		for _, value := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			data := bytes.Clone(whole)
			data[pos] = value
			if !repair(data) {
				continue
			}
			if s, err := fromBytes(data); err == nil {
				opened++
				useAll(s)
			}
		}
	}
	if opened < len(whole) {
		t.Errorf("just %d segments could be opened: this tests nothing", opened)
	}
}

func TestHugeLengths(t *testing.T) {
	whole := build(t, "", BuildOptions{}, 1, smallEntries()).data
	for _, pos := range []int{atBlocks, atBlockBytes, atShared, atSharedSize, atMetaSize, atEntries} {
		for _, value := range []uint64{1 << 20, 1 << 32, math.MaxInt64, math.MaxUint64, math.MaxUint64 / tableEntry, math.MaxUint64 - headerSize} {
			data := bytes.Clone(whole)
			binary.LittleEndian.PutUint64(data[pos:], value)
			sum := headerChecksum(data[:headerSize], []byte("meta"))
			copy(data[atChecksum:], sum[:])
			s, err := fromBytes(data)
			if err == nil {
				useAll(s)
				err = s.Verify(t.Context())
			}
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("%d at %d: %v", value, pos, err)
			}
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, entries := range [][]Entry{nil, smallEntries(), randomEntries(rand.New(rand.NewPCG(3, 4)), 9)} {
		f.Add(build(f, "", BuildOptions{}, 1, entries).data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := fromBytes(data); err == nil {
			useAll(s)
		}
		data = bytes.Clone(data)
		if repair(data) {
			if s, err := fromBytes(data); err == nil {
				useAll(s)
			}
		}
	})
}

// TestPanicOfTheCaller sees that only faults of the map become errors.
func TestPanicOfTheCaller(t *testing.T) {
	s := build(t, "", BuildOptions{}, 1, smallEntries())
	defer func() {
		if p := recover(); p == nil {
			t.Error("a nil pointer in the caller's function became an error")
		}
	}()
	var nowhere *int
	err := s.Scan(0, math.MaxUint64, func(uint64, []byte) bool { *nowhere = 1; return true })
	t.Errorf("Scan returned %v", err)
}

// names lists a directory.
func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestCancel(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "list.seg")
	old := build(t, path, BuildOptions{}, 1, smallEntries())
	entries := randomEntries(rand.New(rand.NewPCG(5, 6)), 5000)
	for i := range 20 {
		b := NewBuilder(BuildOptions{Dir: dir, Key: &testKey, Memory: 1})
		a := b.Adder()
		for _, e := range entries {
			if err := a.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := make(chan bool)
		go func() {
			for range i {
				runtime.Gosched()
			}
			cancel()
			close(cancelled)
		}()
		if i == 0 {
			<-cancelled
		}
		s, err := b.Finish(ctx, path, Header{})
		<-cancelled
		if got := names(t, dir); len(got) != 1 {
			t.Errorf("left behind: %q", got)
		}
		if err == nil && i > 0 {
			old = s
			continue
		}
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), path) {
			t.Errorf("the error of a build that is cancelled: %v", err)
		}
		if segment, err := mapPath(path, &testKey); err != nil || segment.Digest() != old.Digest() {
			t.Errorf("the old file is not there any more: %v", err)
		}
	}
}

func TestAbort(t *testing.T) {
	dir := t.TempDir()
	b := NewBuilder(BuildOptions{Dir: dir, Key: &testKey, Memory: 1})
	a := b.Adder()
	for _, e := range randomEntries(rand.New(rand.NewPCG(7, 8)), 20_000) {
		if err := a.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if b.file == nil {
		t.Fatal("nothing was spilled: this tests nothing")
	}
	b.Abort()
	b.Abort()
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
	if _, err := b.Finish(t.Context(), "", Header{}); err == nil {
		t.Error("Finish after Abort makes a segment")
	}
}

// collect lets cleanups run.
func collect() {
	runtime.GC()
	runtime.Gosched()
}

// TestTemporaryFileDamaged changes a byte of what was spilled.
func TestTemporaryFileDamaged(t *testing.T) {
	dir := t.TempDir()
	b := NewBuilder(BuildOptions{Dir: dir, Key: &testKey, Memory: 1})
	a := b.Adder()
	for _, e := range randomEntries(rand.New(rand.NewPCG(33, 34)), 20_000) {
		if err := a.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.file.WriteAt([]byte("!!!!"), 5000); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Finish(t.Context(), filepath.Join(dir, "list.seg"), Header{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("Finish: %v", err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

// TestVerifyNotices has segments whose checksums match and whose entries don't.
func TestVerifyNotices(t *testing.T) {
	whole := build(t, "", BuildOptions{}, 1, randomEntries(rand.New(rand.NewPCG(29, 30)), 500)).data
	h, err := decodeHeader(whole)
	if err != nil {
		t.Fatal(err)
	}
	table := headerSize + h.blockBytes + h.sharedSize
	for name, change := range map[string]func(data []byte){
		"nothing":             func([]byte) {},
		"an entry too many":   func(data []byte) { data[atEntries]++ },
		"another first hash":  func(data []byte) { data[table+8] ^= 1 },
		"hashes out of order": func(data []byte) { data[headerSize+blockEntry+7] ^= 0xff },
		"a hash of another block": func(data []byte) {
			last := headerSize + placeAt(data[table+8*h.blockCount:], 0).entries*blockEntry - blockEntry
			copy(data[last:last+8], data[table+8:])
		},
		"an end before the start": func(data []byte) { binary.LittleEndian.PutUint32(data[headerSize+8:], 1<<30) },
		"a key without an end": func(data []byte) {
			first := placeAt(data[table+8*h.blockCount:], 0).entries * blockEntry
			data[headerSize+first+1] = 0xff
			data[headerSize+first+2] = 0xff
		},
	} {
		data := bytes.Clone(whole)
		change(data)
		if !repair(data) {
			t.Errorf("%s: can't be repaired", name)
		}
		s, err := fromBytes(data)
		if err == nil {
			err = s.Verify(t.Context())
		}
		if (err == nil) != (name == "nothing") || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := fromBytes(whole)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Verify with a context that is over: %v", err)
	}
}

// TestReplaced sees that a segment in use lives on when another takes its path.
func TestReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "list.seg")
	entries := randomEntries(rand.New(rand.NewPCG(31, 32)), 5000)
	build(t, path, BuildOptions{}, 1, entries)
	old, err := mapPath(path, &testKey)
	if err != nil {
		t.Fatal(err)
	}
	build(t, path, BuildOptions{}, 1, smallEntries())
	check(t, old, entries)
	segment, err := mapPath(path, &testKey)
	if err != nil {
		t.Fatal(err)
	}
	check(t, segment, smallEntries())
}
