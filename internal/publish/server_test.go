package publish

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"
)

// serving is a list that a server serves.
type serving struct {
	*fixture
	*Server
}

func newServing(t *testing.T) serving {
	x := newFixture(t)
	s := serving{x, NewServer(x.Dir)}
	s.set(t, "a.example\n", Written)
	return s
}

func (s serving) set(t *testing.T, text, what string) {
	t.Helper()
	s.Set(s.Name, s.publish(t, text, what))
}

// get asks for a path with header fields in pairs.
func (s serving) get(t *testing.T, method, path string, header ...string) *http.Response {
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func TestServer(t *testing.T) {
	s := newServing(t)
	const patch = "1-s-2-3600.patch"
	s.set(t, strings.Repeat("a.example\n", 100), Written)
	write(t, s.fixture, "private.txt", "secret")
	write(t, s.fixture, "blocked.txt.patches/"+patch, "d1 1\n") // the real one saves nothing
	etag := s.get(t, "GET", "/blocked.txt.minisig").Header.Get("ETag")
	for _, c := range []struct {
		method, path string
		header       []string
		status       int
		body         string
	}{
		{"GET", "/blocked.txt", nil, 200, s.read(t, "blocked.txt")},
		{"HEAD", "/blocked.txt", nil, 200, ""},
		{"GET", "/blocked.txt.minisig", nil, 200, s.read(t, "blocked.txt.minisig")},
		{"GET", "/blocked.txt.minisig", []string{"If-None-Match", etag}, 304, ""},
		{"GET", "/blocked.txt.minisig", []string{"If-None-Match", `"x", W/` + etag}, 304, ""},
		{"GET", "/blocked.txt.minisig", []string{"If-None-Match", `"x"`, "Prefer", "wait=60"}, 200, s.read(t, "blocked.txt.minisig")},
		{"GET", "/blocked.txt.patches/" + patch, nil, 200, "d1 1\n"},
		{"GET", "/blocked.txt.patches/2-s-2-3600.patch", nil, 404, "404 page not found\n"},
		{"GET", "/blocked.txt.patches/../private.txt", nil, 404, "404 page not found\n"},
		{"GET", "/blocked.txt.patches/", nil, 404, "404 page not found\n"},
		{"GET", "/private.txt", nil, 404, "404 page not found\n"},
		{"GET", "/private.txt.minisig", nil, 404, "404 page not found\n"},
		{"GET", "/", nil, 404, "404 page not found\n"},
		{"GET", "/../blocked.txt", nil, 404, "404 page not found\n"},
		{"POST", "/blocked.txt", nil, 405, "only GET and HEAD\n"},
	} {
		res := s.get(t, c.method, c.path, c.header...)
		if body, _ := io.ReadAll(res.Body); res.StatusCode != c.status || string(body) != c.body {
			t.Errorf("%s %s %q: %d %q", c.method, c.path, c.header, res.StatusCode, body)
		}
	}
	s.Keep(func(string) bool { return false })
	if res := s.get(t, "GET", "/blocked.txt"); res.StatusCode != 404 {
		t.Errorf("no longer published: %d", res.StatusCode)
	}
}

// TestPacked has readers that take zstd, and too many of them.
func TestPacked(t *testing.T) {
	s := newServing(t)
	s.set(t, strings.Repeat("a.example\n", 100), Written)
	unpacker, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(8<<20)) // RFC 9659
	if err != nil {
		t.Fatal(err)
	}
	defer unpacker.Close()
	plain := s.get(t, "GET", "/blocked.txt")
	for accept, packs := range map[string]bool{"zstd": true, "gzip, br, ZSTD": true, "": false, "gzip": false, "zstd;q=0": false, "xzstd": false} {
		res := s.get(t, "GET", "/blocked.txt", "Accept-Encoding", accept, "Range", "bytes=0-9")
		body, _ := io.ReadAll(res.Body)
		if packed := res.Header.Get("Content-Encoding") == "zstd"; packed != packs || res.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %v", accept, res.Header)
		}
		if !packs && (res.StatusCode != 206 || len(body) != 10) || packs && (res.StatusCode != 200 || res.Header.Get("Content-Length") != "") {
			t.Errorf("%q: status %d, %d bytes, %v", accept, res.StatusCode, len(body), res.Header)
		}
		if text, err := unpacker.DecodeAll(body, nil); packs && (err != nil || string(text) != s.read(t, "blocked.txt") || len(body) > 300) {
			t.Errorf("%q: %d bytes, %v", accept, len(body), err)
		}
	}
	tag := s.get(t, "GET", "/blocked.txt", "Accept-Encoding", "zstd").Header.Get("ETag")
	if tag != "W/"+plain.Header.Get("ETag") {
		t.Errorf("ETag %s", tag)
	}
	res := s.get(t, "GET", "/blocked.txt", "Accept-Encoding", "zstd", "If-None-Match", tag)
	if body, _ := io.ReadAll(res.Body); res.StatusCode != 304 || len(body) > 0 || res.Header.Get("Content-Encoding") != "" {
		t.Errorf("%d, %d bytes, %v", res.StatusCode, len(body), res.Header)
	}
	for range maxPacking {
		s.packing <- struct{}{}
	}
	if res := s.get(t, "GET", "/blocked.txt", "Accept-Encoding", "zstd"); res.Header.Get("Content-Encoding") != "" {
		t.Error("one more is packed")
	}
}

func TestTokens(t *testing.T) {
	s := newServing(t)
	s.SetTokens([]string{"one", "two"})
	for _, c := range []struct {
		authorization, query string
		status               int
	}{
		{"", "", 401}, {"Bearer one", "", 200}, {"Bearer two", "", 200}, {"Bearer three", "", 401}, {"Bearer ", "", 401}, {"one", "", 401},
		{"", "?token=one", 200}, {"", "?token=two&x", 200}, {"", "?token=", 401}, {"", "?token=three", 401}, {"", "?one", 401},
	} {
		for _, path := range []string{"/blocked.txt", "/blocked.txt.minisig"} {
			if res := s.get(t, "GET", path+c.query, "Authorization", c.authorization); res.StatusCode != c.status {
				t.Errorf("%s%s with %q: %d", path, c.query, c.authorization, res.StatusCode)
			}
		}
	}
}

// TestWait has readers that wait for a new version.
func TestWait(t *testing.T) {
	for name, c := range map[string]struct {
		prefer string
		end    func(t *testing.T, s serving)
		status int
	}{
		"a new version":      {"wait=50", func(t *testing.T, s serving) { s.set(t, "b.example\n", Written) }, 200},
		"the same version":   {"wait=50", func(t *testing.T, s serving) { s.set(t, "a.example\n", Unchanged) }, 304},
		"no longer":          {"wait=50", func(t *testing.T, s serving) { s.Keep(func(string) bool { return false }) }, 404},
		"the server stops":   {"wait=50", func(t *testing.T, s serving) { s.Close() }, 304},
		"nothing":            {"respond-async; wait=50", nil, 304},
		"longer than it may": {"wait=4000", nil, 304},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServing(t)
				etag := s.get(t, "GET", "/blocked.txt.minisig").Header.Get("ETag")
				done := make(chan int)
				go func() {
					res := s.get(t, "GET", "/blocked.txt.minisig", "If-None-Match", etag, "Prefer", c.prefer)
					if !strings.HasPrefix(res.Header.Get("Preference-Applied"), "wait=") {
						t.Errorf("header %v", res.Header)
					}
					done <- res.StatusCode
				}()
				synctest.Wait()
				select {
				case <-done:
					t.Error("it did not wait")
				default:
				}
				if c.end != nil {
					c.end(t, s)
				}
				if got := <-done; got != c.status {
					t.Errorf("status %d, want %d", got, c.status)
				}
			})
		})
	}
}

// TestTooManyWait wants one more than the limit to be answered at once.
func TestTooManyWait(t *testing.T) {
	s := newServing(t)
	s.waiting = make(chan struct{})
	etag := s.get(t, "GET", "/blocked.txt.minisig").Header.Get("ETag")
	if res := s.get(t, "GET", "/blocked.txt.minisig", "If-None-Match", etag, "Prefer", "wait=60"); res.StatusCode != 304 {
		t.Errorf("status %d", res.StatusCode)
	}
}
