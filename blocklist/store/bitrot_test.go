package store

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/verdict"
)

// rotEntries are so many that a list's bits are kept, and a start reads no block of
// its index.
const rotEntries = partKeys + 200

// rotText is a list of one family of names, each with a reason that tells its line.
func rotText(family string) string {
	var b strings.Builder
	for i := range rotEntries {
		fmt.Fprintf(&b, "%s%d.example  # %s %d\n", family, i, family, i+1)
	}
	return b.String()
}

// rotten is a store whose state directory is being damaged. It has two lists.
type rotten struct {
	t     *testing.T
	c     Config
	log   logBuffer
	s     *Store
	files map[string]string // of the lists spam and other
	holds map[string]string // the family that each list holds

	stride int // of those looked up
}

// full reports that everything is to be tested, however long it takes.
func full() bool { return os.Getenv("SPAMGATE_E2E_FULL") == "1" }

// newRotten serves two lists from indexes that were there at the start.
func newRotten(t *testing.T) *rotten {
	r := &rotten{t: t, files: map[string]string{}, holds: map[string]string{"spam": "a", "other": "b"}, stride: 5}
	if full() {
		r.stride = 1
	}
	var lists []List
	for _, name := range []string{"spam", "other"} {
		r.files[name] = write(t, inDir(t, name+".txt"), rotText(r.holds[name]))
		lists = append(lists, blockList(name, r.files[name]))
	}
	r.c = stateful(t, lists...)
	r.c.Filter.Kind = blocklist.KindSized
	r.c.Logger = r.log.logger()
	r.open()
	r.close()
	r.open()
	return r
}

func (r *rotten) open() {
	r.t.Helper()
	r.s = openStore(r.t, r.c)
}

// close ends the store, with all that it does in the background.
func (r *rotten) close() {
	r.t.Helper()
	must(r.t, r.s.Close())
}

func (r *rotten) file(list, name string) string {
	return filepath.Join(ListDir(r.c.StateDir, list), name)
}

// overwrite writes into a file that may be mapped.
func (r *rotten) overwrite(path string, offset int64, b []byte) {
	r.t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(r.t, err)
	_, err = f.WriteAt(b, offset)
	must(r.t, errors.Join(err, f.Close()))
}

// flip changes random bytes of a file.
func (r *rotten) flip(rnd *rand.Rand, path string, bytes int) {
	r.t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(r.t, err)
	defer f.Close()
	info, err := f.Stat()
	must(r.t, err)
	for range bytes {
		var b [1]byte
		offset := rnd.Int64N(info.Size())
		_, err := f.ReadAt(b[:], offset)
		must(r.t, err)
		b[0] ^= byte(1 + rnd.IntN(255))
		_, err = f.WriteAt(b[:], offset)
		must(r.t, err)
	}
}

// answers looks senders up, many that are listed and some that are not. Each answer
// must be right, or an error. It reports how many errors there were.
func (r *rotten) answers() (failed int) {
	r.t.Helper()
	set := r.s.Set()
	for name, family := range r.holds {
		for i := 0; i < rotEntries; i += r.stride {
			d, err := set.Lookup(verdict.Envelope, parse(r.t, fmt.Sprintf("u@%s%d.example", family, i)))
			switch {
			case errors.Is(err, segment.ErrDamaged):
				failed++
			case err != nil:
				r.t.Fatal(err)
			case d.Match.List != name || d.Match.Line != i+1 || d.Match.Reason != fmt.Sprintf("%s %d", family, i+1):
				r.t.Fatalf("%s%d: a wrong answer: %+v", family, i, d)
			}
		}
	}
	for i := range 1000 {
		switch d, err := set.Lookup(verdict.Envelope, parse(r.t, fmt.Sprintf("u@c%d.example", i))); {
		case errors.Is(err, segment.ErrDamaged):
			failed++
		case err != nil || d.Action != verdict.Accept:
			r.t.Fatalf("c%d is listed: %+v, %v", i, d, err)
		}
	}
	return failed
}

// heals waits until there are no errors any more, and reports whether there were.
func (r *rotten) heals() (failed bool) {
	r.t.Helper()
	for late := time.Now().Add(patient); ; {
		n := r.answers()
		if n == 0 {
			break
		}
		failed = true
		if time.Now().After(late) {
			r.t.Fatalf("%d lookups still fail", n)
		}
	}
	if count := len(r.log.lines("index damaged")) + len(r.log.lines("index unusable")); failed && count == 0 {
		r.t.Errorf("it failed, and nothing is said of it: %s", r.log.text.String())
	}
	return failed
}

// What can befall the state directory of a store, running or not: none of it makes
// a wrong answer.
var rots = []struct {
	name string
	make func(r *rotten, rnd *rand.Rand)
}{
	{"a byte of the index", func(r *rotten, rnd *rand.Rand) { r.flip(rnd, r.file("spam", segmentName), 1) }},
	{"bytes of the index", func(r *rotten, rnd *rand.Rand) { r.flip(rnd, r.file("spam", segmentName), 50) }},
	{"the index's end", func(r *rotten, rnd *rand.Rand) {
		path := r.file("spam", segmentName)
		info, err := os.Stat(path)
		must(r.t, err)
		for range 200 { // table and comments
			b := []byte{byte(rnd.IntN(256))}
			r.overwrite(path, info.Size()-1-rnd.Int64N(info.Size()/50), b)
		}
	}},
	{"bytes of the bits", func(r *rotten, rnd *rand.Rand) { r.flip(rnd, r.file("spam", bitsName), 3) }},
	{"index cut", func(r *rotten, rnd *rand.Rand) {
		must(r.t, os.Truncate(r.file("spam", segmentName), rnd.Int64N(1<<20)))
	}},
	{"index emptied", func(r *rotten, rnd *rand.Rand) { must(r.t, os.Truncate(r.file("spam", segmentName), 0)) }},
	{"bits cut", func(r *rotten, rnd *rand.Rand) { must(r.t, os.Truncate(r.file("spam", bitsName), rnd.Int64N(50_000))) }},
	{"zeros", func(r *rotten, rnd *rand.Rand) {
		r.overwrite(r.file("spam", segmentName), rnd.Int64N(1<<19), make([]byte, 1<<19))
	}},
	{"the other list's index, copied", func(r *rotten, rnd *rand.Rand) {
		r.copy(r.file("other", segmentName), r.file("spam", segmentName))
		r.copy(r.file("other", bitsName), r.file("spam", bitsName))
	}},
	{"the other list's index, renamed", func(r *rotten, rnd *rand.Rand) {
		must(r.t, os.Rename(r.file("other", segmentName), r.file("spam", segmentName)))
	}},
	{"all of the other list's, copied", func(r *rotten, rnd *rand.Rand) {
		for _, name := range []string{segmentName, bitsName, stampsName} {
			r.copy(r.file("other", name), r.file("spam", name))
		}
	}},
	{"an older index", func(r *rotten, rnd *rand.Rand) {
		old := map[string]string{}
		for _, name := range []string{segmentName, bitsName, stampsName} {
			old[name] = r.read(r.file("spam", name))
		}
		r.holds["spam"] = "d"
		write(r.t, r.files["spam"], rotText("d"))
		_, err := rescan(r.t, r.s)
		must(r.t, err)
		for name, text := range old {
			write(r.t, r.file("spam", name), text)
		}
		rescan(r.t, r.s) // as each poll does: all of it was read when its bits were made
	}},
	{"another key", func(r *rotten, rnd *rand.Rand) {
		write(r.t, filepath.Join(r.c.StateDir, keyName), strings.Repeat("k", blocklist.SecretSize))
	}},
	{"no key", func(r *rotten, rnd *rand.Rand) { must(r.t, os.Remove(filepath.Join(r.c.StateDir, keyName))) }},
	{"no state directory", func(r *rotten, rnd *rand.Rand) { must(r.t, os.RemoveAll(r.c.StateDir)) }},
	{"no index", func(r *rotten, rnd *rand.Rand) { must(r.t, os.Remove(r.file("spam", segmentName))) }},
}

func (r *rotten) read(path string) string {
	r.t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	must(r.t, err)
	return string(text)
}

// copy copies over a file, as cp does: in place.
func (r *rotten) copy(from, to string) {
	r.t.Helper()
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	must(r.t, err)
	defer in.Close()
	out, err := os.Create(to)
	must(r.t, err)
	_, err = io.Copy(out, in)
	must(r.t, errors.Join(err, out.Close()))
}

// The index of a running store is damaged, before or after it was read: answers are
// right or errors, and soon right. So they are after a restart, and a change of a
// list goes live.
func TestBitRot(t *testing.T) {
	for i, rot := range rots {
		// With -short there is every other one, in one of the three ways in turn.
		leftOut := func(way int) bool { return testing.Short() && i%6 != 2*way }
		for way, read := range []bool{false, true} {
			if !full() && !testing.Short() && read != (i%2 == 0) || leftOut(way) {
				continue
			}
			name := rot.name + ", unread"
			if read {
				name = rot.name + ", read"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := newRotten(t)
				if read {
					r.answers()
				}
				rot.make(r, rand.New(rand.NewPCG(uint64(i), 1)))
				if read {
					rescan(t, r.s) // as each poll does: what was read is checked again
				}
				r.heals()
				r.holds["other"] = "e"
				write(t, r.files["other"], rotText("e"))
				_, err := rescan(t, r.s)
				must(t, err)
				r.heals()
				r.close()
				r.open()
				r.heals()
			})
		}
		if leftOut(2) {
			continue
		}
		t.Run(rot.name+", stopped", func(t *testing.T) {
			t.Parallel()
			r := newRotten(t)
			r.close()
			if strings.HasPrefix(rot.name, "an older") {
				r.open()
			}
			rot.make(r, rand.New(rand.NewPCG(uint64(i), 2)))
			if strings.HasPrefix(rot.name, "an older") {
				r.close()
			}
			r.open()
			r.heals()
			r.close()
			r.open()
			if r.heals() {
				t.Error("damaged still, after it was rebuilt")
			}
		})
	}
}
