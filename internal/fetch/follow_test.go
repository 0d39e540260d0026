package fetch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/internal/publish"
)

// publisher publishes a list that a fixture fetches.
type publisher struct {
	*fixture
	list   publish.List
	now    time.Time // of its clock
	server *publish.Server

	mu    sync.Mutex
	paths []string // that were asked for
}

func newPublisher(t *testing.T, fixed func(*testing.T, http.HandlerFunc) *fixture) *publisher {
	key, err := publish.NewKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	p := &publisher{list: publish.List{Dir: t.TempDir(), Name: "list.txt", Key: key, Expires: time.Hour, Patches: true}, now: time.Now()}
	p.server = publish.NewServer(p.list.Dir)
	t.Cleanup(p.server.Close)
	p.fixture = fixed(t, p.serve)
	p.source.PublicKey = key.Public().String()
	return p
}

func (p *publisher) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.paths = append(p.paths, strings.TrimPrefix(r.URL.Path, "/list.txt"))
	p.mu.Unlock()
	p.server.ServeHTTP(w, r)
}

// asked returns the paths since it was called before: "" for the list, and patch for a patch.
func (p *publisher) asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	paths := p.paths
	p.paths = nil
	for i, path := range paths {
		if strings.HasPrefix(path, patch) {
			paths[i] = patch
		}
	}
	return paths
}

func (p *publisher) publish(t *testing.T, text string) publish.Result {
	t.Helper()
	r, err := p.list.Publish(p.now, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	if err != nil {
		t.Fatal(err)
	}
	p.server.Set(p.list.Name, r)
	return r
}

// wantCopy wants the copy to be a text, after the lines that name its patch.
func (p *publisher) wantCopy(t *testing.T, want string) {
	t.Helper()
	head, text, found := strings.Cut(p.copy(t), "# Diff-Expires: 1 hour\n")
	if !found || !strings.HasPrefix(head, "# Diff-Path: list.txt.patches/") || text != want {
		t.Errorf("copy: %q, %q; want %q", head, text, want)
	}
}

func (p *publisher) copy(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.source.Copy)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func withTLS(t *testing.T, h http.HandlerFunc) *fixture { return newFixture(t, h) }

// list returns version n of a list.
func list(n int) string {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, "user%d@example.net # since %d\n", i, n/(i+1))
	}
	return b.String()
}

// wantFetch fetches, and wants the copy to be a text and these paths to be asked for.
func (p *publisher) wantFetch(t *testing.T, text string, paths ...string) Status {
	t.Helper()
	p.asked()
	status := p.fetch(t)
	p.wantCopy(t, text)
	if asked := p.asked(); !slices.Equal(asked, paths) {
		t.Errorf("asked for %q, want %q", asked, paths)
	}
	return status
}

const (
	sig   = ".minisig"
	patch = ".patches/"
)

func TestFollow(t *testing.T) {
	p := newPublisher(t, withTLS)
	first := p.publish(t, list(0))
	if s := p.wantFetch(t, list(0), "", sig); s.NotModified || s.Sequence != first.Sequence || !s.Expires.Equal(first.Expires) {
		t.Errorf("%+v", s)
	}
	if s := p.wantFetch(t, list(0), sig); !s.NotModified || s.Sequence != first.Sequence {
		t.Errorf("%+v", s)
	}
	p.publish(t, list(1))
	if s := p.wantFetch(t, list(1), sig, patch); s.NotModified || s.Sequence != first.Sequence+1 {
		t.Errorf("%+v", s)
	}
	for n := 2; n < 6; n++ {
		p.publish(t, list(n))
	}
	p.wantFetch(t, list(5), sig, patch, patch, patch, patch)

	p.now = p.now.Add(40 * time.Minute)
	again := p.publish(t, list(5))
	if s := p.wantFetch(t, list(5), sig); !s.NotModified || !s.Expires.Equal(again.Expires) || again.What != publish.Signed {
		t.Errorf("%+v", s)
	}
	p.wantFetch(t, list(5), sig)

	p.publish(t, "other.example\n")
	p.wantFetch(t, "other.example\n", sig, patch, "", sig)
	p.publish(t, list(5)) // a version that was there before
	p.wantFetch(t, list(5), sig, patch, "", sig)
	if n := p.log.count("WARN"); n > 0 {
		t.Error(p.log.String())
	}
}

// TestWholeInstead has patches, or copies, that do not lead to the new version.
func TestWholeInstead(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, p *publisher){
		"no patches": func(t *testing.T, p *publisher) {
			if err := os.RemoveAll(p.list.Dir + "/list.txt.patches"); err != nil {
				t.Fatal(err)
			}
		},
		"damaged patches": func(t *testing.T, p *publisher) {
			patches, err := filepath.Glob(p.list.Dir + "/list.txt.patches/*")
			if err != nil || len(patches) == 0 {
				t.Fatal(patches, err)
			}
			for _, d := range patches {
				text, err := os.ReadFile(d)
				if err != nil {
					t.Fatal(err)
				}
				text[len(text)-6] ^= 1
				write(t, d, string(text))
			}
		},
		"a web page in its place": func(t *testing.T, p *publisher) {
			p.handler.set(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, patch) {
					w.Header().Set("Content-Type", "text/html")
					return
				}
				p.serve(w, r)
			})
		},
		"the copy was changed, with its time": func(t *testing.T, p *publisher) {
			info, err := os.Stat(p.source.Copy)
			if err != nil {
				t.Fatal(err)
			}
			write(t, p.source.Copy, strings.Replace(p.copy(t), "user1@", "user2@", 1))
			if err := os.Chtimes(p.source.Copy, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
		"the copy was changed": func(t *testing.T, p *publisher) { write(t, p.source.Copy, "x") },
		"the copy is gone":     func(t *testing.T, p *publisher) { remove(t, p.source.Copy) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublisher(t, withTLS)
			p.publish(t, list(0))
			p.fetch(t)
			p.publish(t, list(1))
			change(t, p)
			p.fetch(t)
			p.wantCopy(t, list(1))
			p.wantNoDrafts(t)
		})
	}
}

func (x *fixture) wantNoDrafts(t *testing.T) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(x.source.Copy), ".*")); left != nil {
		t.Errorf("left: %s", left)
	}
}

// TestTransfer measures the bytes of a list with SPAMGATE_DIFF_LINES lines, and of a hundred changes.
func TestTransfer(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SPAMGATE_DIFF_LINES"))
	if n == 0 {
		t.Skip("SPAMGATE_DIFF_LINES is not set")
	}
	p := newPublisher(t, withTLS)
	var bytes atomic.Int64
	p.handler.set(func(w http.ResponseWriter, r *http.Request) { p.serve(&countingWriter{w, &bytes}, r) })
	r := rand.New(rand.NewPCG(1, 1))
	entry := func() string { return fmt.Sprintf("%x@example%d.net\n", r.Uint64(), r.IntN(100000)) }
	lines := make([]string, n)
	for i := range lines {
		lines[i] = entry()
	}
	measure := func(what string) {
		p.publish(t, strings.Join(lines, ""))
		bytes.Store(0)
		began := time.Now()
		p.fetch(t)
		t.Logf("%s: %d bytes, fetched in %v", what, bytes.Load(), time.Since(began).Round(time.Millisecond))
	}
	measure("whole list")
	for range 100 {
		lines[r.IntN(n)] = entry()
	}
	measure("100 entries changed")
	lines = append(lines, entry())
	measure("an entry added")
}

type countingWriter struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.n.Add(int64(len(p)))
	return w.ResponseWriter.Write(p)
}

// TestPatchURL has lists that name patches on other servers, or none.
func TestPatchURL(t *testing.T) {
	for path, want := range map[string]string{
		"list.txt.patches/1-s-2-3600.patch#list": "https://lists.example/a/list.txt.patches/1-s-2-3600.patch?token=x",
		"../b/1.patch":                           "https://lists.example/b/1.patch?token=x",
		"":                                       "", "https://other.example/x": "", "//other.example/x": "", "x?token=y": "", "%": "",
	} {
		if got, err := (Source{URL: "https://lists.example/a/list.txt?token=x"}).patchURL(path); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
}

// TestFileServer has a publisher's directory on a web server that sends no ETag.
func TestFileServer(t *testing.T) {
	p := newPublisher(t, withTLS)
	files := http.FileServer(http.Dir(p.list.Dir))
	p.handler.set(func(w http.ResponseWriter, r *http.Request) {
		p.serve(httptest.NewRecorder(), r)
		files.ServeHTTP(w, r)
	})
	p.publish(t, list(0))
	p.wantFetch(t, list(0), "", sig)
	p.wantFetch(t, list(0), sig)
	p.publish(t, list(1))
	p.wantFetch(t, list(1), sig, patch)
	if st, err := loadState(p.source.withDefaults()); err != nil || st.Waits {
		t.Errorf("%+v, %v", st, err)
	}
}

// TestLowerSequence has a publisher, or who controls its server, that goes back.
func TestLowerSequence(t *testing.T) {
	p := newPublisher(t, withTLS)
	older := p.publish(t, list(0))
	saved := p.list.Dir + "-saved"
	if err := os.CopyFS(saved, os.DirFS(p.list.Dir)); err != nil {
		t.Fatal(err)
	}
	newer := p.publish(t, list(1))
	p.fetch(t)

	lower := fmt.Sprintf("it has the sequence number %d, and %d was accepted", older.Sequence, newer.Sequence)
	p.list.Dir = saved // signed as fast, so that the time does not tell
	p.server = publish.NewServer(saved)
	p.server.Set(p.list.Name, older)
	p.wantFault(t, lower, ErrOlder)
	remove(t, p.source.Copy)
	p.wantFault(t, lower, ErrOlder)

	p.source.Force = true
	p.wantFetch(t, list(0), "", sig)
	p.source.Force = false
	p.wantFetch(t, list(0), sig)
}

// TestExpired has a publisher that stops signing.
func TestExpired(t *testing.T) {
	p := newPublisher(t, withTLS)
	p.publish(t, list(0))
	p.fetch(t)
	p.fetcher.now = func() time.Time { return time.Now().Add(61 * time.Minute) }
	p.wantFault(t, "its signature has expired", ErrExpired)
	p.wantFault(t, "its signature has expired", ErrExpired)
	p.publish(t, list(1)) // by a clock that is slow
	p.wantFault(t, "its signature has expired", ErrExpired)
	p.wantCopy(t, list(0))
	p.now = p.now.Add(time.Hour)
	p.publish(t, list(2))
	p.fetch(t)
	p.wantCopy(t, list(2))
}

// TestMoment has a publisher that replaces a list while it is fetched.
func TestMoment(t *testing.T) {
	p := newPublisher(t, withTLS)
	p.publish(t, list(0))
	n := 0
	p.handler.set(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, sig) && n < 2 {
			n++
			p.publish(t, list(n))
		}
		p.serve(w, r)
	})
	p.wantFetch(t, list(2), "", sig, "", sig, "", sig)
	p.handler.set(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, sig) {
			n++
			p.publish(t, list(n))
		}
		p.serve(w, r)
	})
	p.source.Force = true
	p.wantFault(t, "at this moment", ErrSignature)
}

// TestFollowAfterRollback wants the version that was replaced not to come back, and a new one
// to come.
func TestFollowAfterRollback(t *testing.T) {
	p := newPublisher(t, withTLS)
	p.publish(t, list(0))
	p.fetch(t)
	before := p.copy(t)
	p.publish(t, list(1))
	p.fetch(t)
	rollBack(t, p.fixture, before)
	p.now = p.now.Add(40 * time.Minute)
	p.publish(t, list(1)) // signed again
	if s := p.wantFetch(t, list(0), sig); !s.NotModified || !s.Replaced {
		t.Errorf("%+v", s)
	}
	p.publish(t, list(2))
	p.wantFetch(t, list(2), sig, patch, patch)
}

// TestOrdinarySignature has a publisher who signs with minisign from now on.
func TestOrdinarySignature(t *testing.T) {
	public, private := newKey(t)
	x := newFixture(t, nil)
	x.source.PublicKey = public.String()
	sum := sha256.Sum256([]byte(listText))
	current := time.Now().Unix()
	x.handler.set(signed(listText, signAs(private, listText, fmt.Sprintf("%s\tsequence:5\tsha256:%x", comment("list.txt", current), sum))))
	x.fetch(t)
	x.handler.set(signed(otherText, signAs(private, otherText, comment("list.txt", current))))
	x.fetch(t)
	x.wantCopy(t, otherText)
	x.handler.set(signed(listText, signAs(private, listText, comment("list.txt", current)+"\tsequence:4")))
	x.wantFault(t, "the sequence number 4, and 5 was accepted", ErrOlder)
}

// TestAwaitNew has a loop that fetches a new version as soon as it is there.
func TestAwaitNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPublisher(t, newBubbleFixture)
		p.source.Refresh = 24 * time.Hour
		p.list.Expires = 1000 * time.Hour
		p.publish(t, list(0))
		p.fetcher.Update([]Source{p.source})
		time.Sleep(10 * time.Minute)
		p.wantCopy(t, list(0))
		if asked := p.asked(); len(asked) < 10 || len(asked) > 20 {
			t.Errorf("%d questions in ten minutes", len(asked))
		}
		for n := 1; n < 4; n++ {
			p.publish(t, list(n))
			time.Sleep(time.Second)
			p.wantCopy(t, list(n))
		}
		// The publisher is away, comes back and has a new version.
		p.handler.set(answer(http.StatusBadGateway))
		time.Sleep(time.Hour)
		p.handler.set(p.serve)
		p.publish(t, list(4))
		time.Sleep(mostWait + time.Second)
		p.wantCopy(t, list(4))
		// A version that cannot be taken is not asked for again and again.
		good := p.list.Key
		key, err := publish.NewKey(filepath.Join(t.TempDir(), "key"))
		if err != nil {
			t.Fatal(err)
		}
		p.list.Key = key
		p.publish(t, list(5))
		p.asked()
		time.Sleep(10 * time.Minute)
		p.wantCopy(t, list(4))
		if asked := p.asked(); len(asked) > 80 {
			t.Errorf("%d questions in ten minutes", len(asked))
		}
		p.list.Key = good
		p.publish(t, list(6))
		time.Sleep(5 * time.Minute)
		p.wantCopy(t, list(6))
		// The server can wait no more.
		p.handler.set(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Prefer")
			p.serve(w, r)
		})
		p.publish(t, list(7))
		time.Sleep(time.Minute)
		p.asked()
		time.Sleep(time.Hour)
		if asked := p.asked(); len(asked) > 1 {
			t.Errorf("asked for %q", asked)
		}
		p.fetcher.Close()
		p.fixture.server.CloseClientConnections()
	})
}

// mirror is a server between a publisher and those who fetch, which answers each question for a
// signature at once, each time with another identifier. Change may replace the signature.
func (p *publisher) mirror(change func(n int, waits bool, signature string) string) http.HandlerFunc {
	n := 0 // one question comes after the other
	return func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, sig) {
			p.serve(w, r)
			return
		}
		waits := r.Header.Get("Prefer") != preferNow
		r.Header.Del("If-None-Match")
		answer := httptest.NewRecorder()
		p.serve(answer, r)
		n++
		w.Header().Set("Preference-Applied", "wait=50")
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, n))
		io.WriteString(w, change(n, waits, answer.Body.String()))
	}
}

// TestSameSignature has a mirror that sends the signature of the copy again, under another name.
// It is not verified again: the whole copy is read for that, as the change of the copy below shows,
// which a verification would find, and a confirmation by 304 would not either.
func TestSameSignature(t *testing.T) {
	for name, change := range map[string]func(n int, waits bool, signature string) string{
		"the same bytes":            func(_ int, _ bool, signature string) string { return signature },
		"another untrusted comment": func(n int, _ bool, signature string) string { return recomment(n, signature) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublisher(t, withTLS)
			p.publish(t, list(0))
			p.fetch(t)
			p.handler.set(p.mirror(change))
			info, err := os.Stat(p.source.Copy)
			if err != nil {
				t.Fatal(err)
			}
			changed := strings.Replace(list(0), "user1@", "user2@", 1)
			write(t, p.source.Copy, strings.Replace(p.copy(t), "user1@", "user2@", 1))
			if err := os.Chtimes(p.source.Copy, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
			if s := p.wantFetch(t, changed, sig); !s.NotModified {
				t.Errorf("%+v", s)
			}
			p.now = p.now.Add(40 * time.Minute)
			p.publish(t, list(0)) // signed again: that is verified, and the copy repaired
			if _, err := p.fetcher.Fetch(t.Context(), p.source); !errors.Is(err, ErrSignature) {
				t.Errorf("another signature of the changed copy: %v, want %v", err, ErrSignature)
			}
		})
	}
}

// recomment writes another untrusted comment into a signature.
func recomment(n int, signature string) string {
	_, rest, _ := strings.Cut(signature, "\n")
	return fmt.Sprintf("untrusted comment: %d\n%s", n, rest)
}

// TestWaitInVain has mirrors that answer each wait at once, and wants a gate that asks ever less
// often, and has the next version soon.
func TestWaitInVain(t *testing.T) {
	for name, change := range map[string]func(older, signature string) func(n int, waits bool, current string) string{
		"the same signature": func(_, _ string) func(int, bool, string) string {
			return func(_ int, _ bool, current string) string { return current }
		},
		"another untrusted comment": func(_, _ string) func(int, bool, string) string {
			return func(n int, _ bool, current string) string { return recomment(n, current) }
		},
		"an older signature for those who wait": func(older, signature string) func(int, bool, string) string {
			return func(_ int, waits bool, current string) string {
				if waits && current == signature {
					return older
				}
				return current
			}
		},
		"an older signature, in turn": func(older, signature string) func(int, bool, string) string {
			return func(n int, _ bool, current string) string {
				if n%2 == 0 && current == signature {
					return older
				}
				return current
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPublisher(t, newBubbleFixture)
				p.source.Refresh = 24 * time.Hour
				p.list.Expires = 100 * time.Hour
				older := p.publish(t, list(0))
				p.now = p.now.Add(60 * time.Hour)
				time.Sleep(60 * time.Hour)
				newer := p.publish(t, list(0))
				if newer.What != publish.Signed {
					t.Fatalf("published twice, the second time %v", newer.What)
				}
				p.handler.set(p.mirror(change(string(older.Signature), string(newer.Signature))))
				p.fetcher.Update([]Source{p.source})
				time.Sleep(10 * time.Minute)
				p.wantCopy(t, list(0))
				asked := p.asked()
				if len(asked) < 10 || len(asked) > 80 {
					t.Fatalf("%d questions in ten minutes", len(asked))
				}
				p.now = p.now.Add(time.Hour)
				time.Sleep(time.Hour)
				p.publish(t, list(1))
				time.Sleep(90 * time.Minute)
				p.wantCopy(t, list(1))
				p.fetcher.Close()
				p.fixture.server.CloseClientConnections()
			})
		})
	}
}

// TestPublicationState wants what a fetch knows to survive a new start.
func TestPublicationState(t *testing.T) {
	p := newPublisher(t, withTLS)
	r := p.publish(t, list(0))
	p.fetch(t)
	s := firstStatus(p.source.withDefaults(), time.Now())
	if s.Sequence != r.Sequence || !s.Expires.Equal(r.Expires) {
		t.Errorf("%+v", s)
	}
	st, err := loadState(p.source.withDefaults())
	if err != nil || !st.Waits || st.Signature == "" {
		t.Errorf("%+v, %v", st, err)
	}
	if !errors.Is(expired(r.Expires.Unix(), r.Expires), ErrExpired) || expired(r.Expires.Unix(), r.Expires.Add(-time.Second)) != nil {
		t.Error("the end of a signature")
	}
}
