package world

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"aead.dev/minisign"

	"spamgate/internal/fetch"
	"spamgate/internal/publish"
)

// TestFeeds plays a publisher of a signed list, a mirror that serves what it likes of what it has, and
// a gate that fetches.
//
// What is watched: the copy is always a whole version of this list that the publisher has signed, not
// from the future, not expired when it came, and never older than one before; what is good is taken,
// and what is not leaves the copy as it was, with an error. A list whose signature is that of another
// version makes the gate ask again after seconds: that is not played.
func TestFeeds(t *testing.T) {
	run(t, &part{few: 60, draw: drawFeeds, play: playFeeds})
}

// A feedMove is a version that is published, or a fetch.
type feedMove struct {
	what    string
	entries int
	ahead   time.Duration // of the publisher's clock
	expires time.Duration // of the signature; 0: never
	mirror  string        // what the mirror does
	version int           // that it serves
}

func (m *feedMove) String() string { return fmt.Sprintf("%+v", *m) }

func drawFeeds(r *rand.Rand) []move {
	moves := make([]move, 6+r.IntN(14))
	for i := range moves {
		moves[i] = &feedMove{
			what: pick(r, "publish", "fetch", "fetch"), entries: r.IntN(40), version: r.IntN(100),
			ahead:   pick(r, 0, 0, 0, -48*time.Hour, -time.Hour, time.Hour, 23*time.Hour, 25*time.Hour, 300*24*time.Hour),
			expires: pick(r, 0, 24*time.Hour, 72*time.Hour),
			mirror:  pick(r, "newest", "newest", "newest", "older", "other list", "other key", "endless signature", "no signature", "an error"),
		}
	}
	return moves
}

// feedKeys are those of the publisher and of somebody else.
var feedKeys = sync.OnceValue(func() (keys [2]publish.Key) {
	dir := must(os.MkdirTemp(memory(), "world-keys-*"))
	defer os.RemoveAll(dir)
	for i := range keys {
		keys[i] = must(publish.NewKey(filepath.Join(dir, fmt.Sprint(i))))
	}
	return keys
})

// A feedVersion is what was published.
type feedVersion struct {
	list, signature []byte
	file            string
	key             int
	signed, expires time.Time // zero: never
	sequence        int64
}

// A feedWorld is a directory of a publisher, and a gate's copy.
type feedWorld struct {
	world    *world
	start    time.Time
	versions []feedVersion
	serves   func(w http.ResponseWriter, path string)
	fetcher  *fetch.Fetcher
	source   fetch.Source
	last     *feedVersion // that was accepted
}

func playFeeds(w *world, moves []move) error {
	s := &feedWorld{world: w, start: time.Now(), fetcher: fetch.New(fetch.Options{})}
	defer s.fetcher.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serves(w, r.URL.Path) }))
	defer server.Close()
	s.source = fetch.Source{
		Name: "feed", URL: server.URL + "/blocked.txt", AllowHTTP: true, Copy: filepath.Join(w.dir, "copy", "feed"),
		PublicKey: feedKeys()[0].Public().String(),
	}
	if err := s.publish("blocked.txt", 0, &feedMove{entries: 3}); err != nil {
		return err
	}
	for i, m := range moves {
		if err := s.move(i+1, m.(*feedMove)); err != nil {
			return err
		}
	}
	return nil
}

// publish publishes a version, as a publisher of a directory of its own for each key and file.
func (s *feedWorld) publish(file string, key int, m *feedMove) error {
	dir := filepath.Join(s.world.dir, fmt.Sprint("published", key))
	check(os.MkdirAll(dir, 0o700))
	l := publish.List{Dir: dir, Name: file, Key: feedKeys()[key], Expires: m.expires, Patches: true}
	result, err := l.Publish(s.start.Add(m.ahead), func(w io.Writer) error {
		_, err := io.WriteString(w, publish.Start(file)+strings.Repeat("a.example # one\n", m.entries)+fmt.Sprintf("v%d.example # new\n", len(s.versions)))
		return err
	})
	if err != nil {
		return err
	}
	v := feedVersion{list: read(filepath.Join(dir, file)), signature: read(filepath.Join(dir, file+".minisig")), file: file, key: key,
		signed: result.Signed, expires: result.Expires, sequence: result.Sequence}
	if !minisign.Verify(l.Key.Public(), v.list, v.signature) {
		return fmt.Errorf("the publisher's signature of %s is not good", file)
	}
	s.versions = append(s.versions, v)
	return nil
}

func (s *feedWorld) move(n int, m *feedMove) error {
	if m.what == "publish" {
		s.world.tell("%d. %d entries are published, clock %s ahead, for %s", n, m.entries, m.ahead, m.expires)
		return s.publish("blocked.txt", 0, m)
	}
	v, list, signature, err := s.served(m)
	if err != nil {
		return err
	}
	s.serves = func(w http.ResponseWriter, path string) {
		w.Header().Set("Content-Type", "text/plain")
		switch {
		case m.mirror == "an error":
			w.WriteHeader(http.StatusInternalServerError)
		case path == "/blocked.txt":
			_, _ = w.Write(list)
		case path == "/blocked.txt.minisig" && m.mirror != "no signature":
			_ = http.NewResponseController(w).Flush() // it does not say how long it is
			_, _ = w.Write(signature)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
	before := read(s.source.Copy)
	_, err = s.fetcher.Fetch(context.Background(), s.source)
	after := read(s.source.Copy)
	s.world.tell("%d. %s is fetched, sequence %d: changed %t, failed %t", n, m.mirror, v.sequence-s.versions[0].sequence, !bytes.Equal(before, after), err != nil)
	return s.judge(m, v, before, after, err)
}

// served returns what the mirror serves, and the version whose signature that is.
func (s *feedWorld) served(m *feedMove) (v feedVersion, list, signature []byte, err error) {
	newest := func(file string, key int) (v feedVersion) {
		for _, other := range s.versions {
			if other.file == file && other.key == key {
				v = other
			}
		}
		return v
	}
	v = newest("blocked.txt", 0)
	switch m.mirror {
	case "older":
		for v = s.versions[m.version%len(s.versions)]; v.file != "blocked.txt" || v.key != 0; {
			v = s.versions[0]
		}
	case "other list":
		err = s.publish("allowed.txt", 0, m)
		v = newest("allowed.txt", 0)
	case "other key":
		err = s.publish("blocked.txt", 1, m)
		v = newest("blocked.txt", 1)
	}
	list, signature = v.list, v.signature
	if m.mirror == "endless signature" {
		signature = append(bytes.Clone(signature), bytes.Repeat([]byte("\n"), 1<<20)...)
	}
	return v, list, signature, err
}

// judge compares what came of a fetch with what may come of it.
func (s *feedWorld) judge(m *feedMove, v feedVersion, before, after []byte, err error) error {
	good := m.mirror != "an error" && m.mirror != "no signature" && m.mirror != "endless signature" && v.file == "blocked.txt" && v.key == 0 &&
		!v.signed.After(s.start.Add(24*time.Hour)) && (v.expires.IsZero() || v.expires.After(s.start.Add(time.Minute))) &&
		(s.last == nil || !v.signed.Before(s.last.signed) && v.sequence >= s.last.sequence)
	switch taken := bytes.Equal(after, v.list); {
	case good && (err != nil || !taken):
		return fmt.Errorf("what is good is not taken: %w", err)
	case !good && !bytes.Equal(before, after):
		return fmt.Errorf("the copy is now %q, of a mirror with %s", after, m.mirror)
	case !good && err == nil && !taken:
		return fmt.Errorf("a mirror with %s is not told", m.mirror)
	case good:
		s.last = &v
	}
	return nil
}
