package fetch

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
)

// TestFetch wants a copy, its state and nothing else.
func TestFetch(t *testing.T) {
	x := newFixture(t, send(listText, "ETag", `"1"`, "Last-Modified", "Sat, 01 Aug 2026 10:00:00 GMT"))
	status := x.fetch(t)
	x.wantCopy(t, listText)
	if status.NotModified || status.ETag != `"1"` || status.LastModified != "Sat, 01 Aug 2026 10:00:00 GMT" || status.Bytes != int64(len(listText)) ||
		status.Err != nil || status.LastGood.Before(status.LastTry) || status.LastTry.IsZero() || !status.NextTry.IsZero() {
		t.Errorf("status %+v", status)
	}
	files := x.files(t)
	if len(files) != 2 || !strings.HasPrefix(files["copy"], "-rw-r--r--") || !strings.HasPrefix(files["copy.json"], "-rw-------") {
		t.Errorf("files: %v", files)
	}
	if got := x.handler.requests()[0]; got.Get("User-Agent") != "spamgate" || got.Get("Accept-Encoding") != "zstd" || got.Get("If-None-Match") != "" {
		t.Errorf("request: %v", got)
	}
}

// TestConditions goes through what a server says of a version, and what it is
// asked then.
func TestConditions(t *testing.T) {
	const date = "Sat, 01 Aug 2026 10:00:00 GMT"
	for _, c := range []struct {
		name         string
		header       []string
		match, since string // the next request
	}{
		{"ETag", []string{"ETag", `"1"`}, `"1"`, ""},
		{"weak ETag", []string{"ETag", `W/"1"`}, `W/"1"`, ""},
		{"date", []string{"Last-Modified", date}, "", date},
		{"both", []string{"ETag", `"1"`, "Last-Modified", date}, `"1"`, date},
		{"a minute ago", []string{"Last-Modified", date, "Date", "Sat, 01 Aug 2026 10:01:00 GMT"}, "", date},
		{"less than a minute ago", []string{"Last-Modified", date, "Date", "Sat, 01 Aug 2026 10:00:59 GMT"}, "", ""},
		{"this second", []string{"Last-Modified", date, "Date", date}, "", ""},
		{"this second, with an ETag", []string{"ETag", `"1"`, "Last-Modified", date, "Date", date}, `"1"`, ""},
		{"in the future", []string{"Last-Modified", date, "Date", "Sat, 01 Aug 2026 09:59:59 GMT"}, "", ""},
		{"no Date", []string{"Last-Modified", date, "Date", ""}, "", ""},
		{"no time", []string{"Last-Modified", "yesterday"}, "", ""},
		{"neither", nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newFixture(t, send(listText, c.header...))
			x.fetch(t)
			before := x.files(t)["copy"]
			x.handler.set(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != "" {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				send(listText, c.header...)(w, r)
			})
			first := x.fetch(t)
			asked := x.handler.requests()[1]
			if asked.Get("If-None-Match") != c.match || asked.Get("If-Modified-Since") != c.since {
				t.Errorf("asked: %v", asked)
			}
			if conditional := c.match+c.since != ""; first.NotModified != conditional || conditional && x.files(t)["copy"] != before {
				t.Errorf("status %+v, copy before %q, now %q", first, before, x.files(t)["copy"])
			}

			x.handler.set(send(otherText, "ETag", `"2"`))
			if status := x.fetch(t); status.NotModified || status.ETag != `"2"` || status.LastModified != "" {
				t.Errorf("status %+v", status)
			}
			x.wantCopy(t, otherText)
		})
	}
}

// TestChangedInSecond has a list that changes in the second of its fetch, at a server without an ETag.
func TestChangedInSecond(t *testing.T) {
	modified := time.Date(2026, 8, 1, 10, 0, 0, 0, time.UTC)
	serve := func(text string, date time.Time) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", date.Format(http.TimeFormat))
			http.ServeContent(w, r, "list.txt", modified, strings.NewReader(text))
		}
	}
	x := newFixture(t, serve(listText, modified))
	x.fetch(t)
	x.wantCopy(t, listText)
	x.handler.set(serve(otherText, modified.Add(time.Minute)))
	if status := x.fetch(t); status.NotModified {
		t.Errorf("status %+v", status)
	}
	x.wantCopy(t, otherText)
	if status := x.fetch(t); !status.NotModified { // now the server's answer counts
		t.Errorf("status %+v", status)
	}
}

// TestOtherCopy wants no conditions where the state is not that of the copy that
// is there.
func TestOtherCopy(t *testing.T) {
	public, private := newKey(t)
	for _, c := range []struct {
		name   string
		change func(t *testing.T, x *fixture)
		known  bool
	}{
		{"as it was", func(*testing.T, *fixture) {}, true},
		{"touched", func(t *testing.T, x *fixture) { touch(t, x.source.Copy) }, true},
		{"removed", func(t *testing.T, x *fixture) { remove(t, x.source.Copy) }, false},
		{"state removed", func(t *testing.T, x *fixture) { remove(t, x.source.Copy+stateSuffix) }, false},
		{"state damaged", func(t *testing.T, x *fixture) { write(t, x.source.Copy+stateSuffix, `{"url":`) }, false},
		{"state of something else", func(t *testing.T, x *fixture) { write(t, x.source.Copy+stateSuffix, `{"etag": "\"1\""}`) }, false},
		{"written to", func(t *testing.T, x *fixture) { write(t, x.source.Copy, listText+"example.edu\n") }, false},
		{"written to, of the same size", func(t *testing.T, x *fixture) {
			write(t, x.source.Copy, strings.ToUpper(listText))
			touch(t, x.source.Copy) // the file system's clock may not have moved since the fetch
		}, false},
		{"cut", func(t *testing.T, x *fixture) { write(t, x.source.Copy, "") }, false},
		{"from another URL", func(t *testing.T, x *fixture) { x.source.URL += "?other" }, false},
		{"not signed", func(t *testing.T, x *fixture) { x.source.PublicKey = public.String() }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			serve := signed(listText, sign(private, listText))
			x := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("ETag", `"1"`)
				if r.Header.Get("If-None-Match") != "" {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				serve(w, r)
			})
			x.fetch(t)
			c.change(t, x)
			if status := x.fetch(t); status.NotModified != c.known {
				t.Errorf("status %+v", status)
			}
			x.wantCopy(t, listText)
		})
	}
}

// TestStateDamagedHeader wants a state that can't be sent not to end in an error.
func TestStateDamagedHeader(t *testing.T) {
	x := newFixture(t, send(listText, "ETag", `"1"`))
	x.fetch(t)
	path := x.source.Copy + stateSuffix
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Replace(string(text), `\"1\"`, `1\r\nX: y`, 1))
	x.fetch(t)
}

// TestModeStays wants a copy's mode to outlive its replacement.
func TestModeStays(t *testing.T) {
	x := newFixture(t, send(listText))
	x.fetch(t)
	if err := os.Chmod(x.source.Copy, 0o640); err != nil {
		t.Fatal(err)
	}
	x.handler.set(send(otherText))
	x.fetch(t)
	if text := x.files(t)["copy"]; !strings.HasPrefix(text, "-rw-r----- ") || !strings.HasSuffix(text, otherText) {
		t.Errorf("copy: %s", text)
	}
}

// TestBytesAsTheyAre wants packed lists to stay packed, whatever the server calls
// that.
func TestBytesAsTheyAre(t *testing.T) {
	packed := gzipped(listText)
	for _, encoding := range []string{"", "identity", "gzip", "x-gzip"} {
		x := newFixture(t, send(packed, "Content-Type", "application/octet-stream", "Content-Encoding", encoding))
		x.fetch(t)
		x.wantCopy(t, packed)
	}
}

// TestUnpacked has servers that pack lists as the request asks.
func TestUnpacked(t *testing.T) {
	text := strings.Repeat(listText, 1000)
	pack := func(options ...zstd.EOption) string {
		z, err := zstd.NewWriter(nil, options...)
		if err != nil {
			t.Fatal(err)
		}
		return string(z.EncodeAll([]byte(text), nil))
	}
	packed := pack()
	x := newFixture(t, send(packed, "Content-Encoding", "ZSTD", "ETag", `W/"1"`))
	x.fetch(t)
	x.wantCopy(t, text)
	for name, c := range map[string]struct{ body, want string }{
		"cut":       {packed[:len(packed)-1], "cut off"},
		"in a half": {packed[:len(packed)/2], "cut off"},
		"damaged":   {packed[:len(packed)-1] + "x", "CRC"},
		"no zstd":   {text, "magic"},
		"nothing":   {"", "it is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			x.handler.set(send(c.body, "Content-Encoding", "zstd"))
			x.wantFault(t, c.want, nil)
		})
	}
	x.source.MaxBytes = int64(len(text)) - 1
	x.handler.set(send(packed, "Content-Encoding", "zstd"))
	x.wantFault(t, "max_bytes", ErrTooLarge)
	x.source.MaxBytes = 0
	x.source.URL += ".zst" // a packed file, of which servers say that, too
	x.fetch(t)
	x.wantCopy(t, packed)
	if got := x.handler.requests(); got[len(got)-1].Get("Accept-Encoding") != "identity" {
		t.Error("a packed file was asked for packed once more")
	}
}

// TestNotHTML has lists that begin like web pages.
func TestNotHTML(t *testing.T) {
	for _, text := range []string{"<>\n", "<bounce@example.com>\n", "# <html>\n", "||example.com^\n", "\uFEFFexample.com\n", "[\"example.com\"]"} {
		x := newFixture(t, send(text))
		x.fetch(t)
		x.wantCopy(t, text)
	}
}

// TestHTTP2 wants the newer protocol to be spoken, and cut bodies to be seen there.
func TestHTTP2(t *testing.T) {
	h2 := func(s *httptest.Server) { s.EnableHTTP2 = true }
	x := newFixture(t, func(w http.ResponseWriter, r *http.Request) { send(r.Proto)(w, r) }, h2)
	x.fetch(t)
	x.wantCopy(t, "HTTP/2.0")
	x.handler.set(func(w http.ResponseWriter, r *http.Request) {
		send(listText, "Content-Length", "4000")(w, r)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	x.wantFault(t, "36 of 4000 bytes received", nil)
	x.handler.set(abortAfter(listText))
	x.wantFault(t, "36 bytes received", nil)
}

// TestProgress wants to be told of a beginning, of bytes that come, and of the end.
func TestProgress(t *testing.T) {
	text := strings.Repeat(listText, 10000)
	x := newFixture(t, send(text))
	var told []int64
	x.fetcher.progress = func(name string, done, total int64) {
		if name != "ads" || total != -1 {
			t.Errorf("%s, %d of %d", name, done, total)
		}
		told = append(told, done)
	}
	x.fetch(t)
	if len(told) < 3 || told[0] != 0 || told[len(told)-1] != int64(len(text)) {
		t.Errorf("told: %v", told)
	}
}

// TestSecretsAreNotShown wants no password or token in what is logged.
func TestSecretsAreNotShown(t *testing.T) {
	x := newFixture(t, answer(500))
	for _, url := range []string{
		strings.Replace(x.server.URL, "https://", "https://user:secret@", 1) + "/list.txt?token=secret#secret",
		"https://user:secret@192.0.2.1:x/", "ftp://user:secret@192.0.2.1/", "secret",
	} {
		x.source.URL = url
		if _, err := x.fetcher.Fetch(t.Context(), x.source); err == nil || strings.Contains(err.Error(), "secret@") || strings.Contains(err.Error(), "=secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestCheck has sources that can't be fetched.
func TestCheck(t *testing.T) {
	good := Source{Name: "ads", URL: "https://lists.example/ads", Copy: "/lists/copy"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		change func(*Source)
		want   string
	}{
		{func(s *Source) { s.URL = "" }, "write https://host/path"},
		{func(s *Source) { s.URL = "lists.example/ads" }, "write https://host/path"},
		{func(s *Source) { s.URL = "ftp://lists.example/ads" }, "write https://host/path"},
		{func(s *Source) { s.URL = "https:///ads" }, "write https://host/path"},
		{func(s *Source) { s.URL = "http://lists.example/ads" }, "set allow_http = true"},
		{func(s *Source) { s.Copy = "copy" }, `the copy "copy" is not an absolute path`},
		{func(s *Source) { s.PublicKey = "untrusted comment: key\n" }, "the last line of its .pub file"},
		{func(s *Source) { s.PublicKey = "RWQ=" }, "the last line of its .pub file"},
		{func(s *Source) { s.PublicKey, s.SignatureURL = testdata(t, "key.pub"), "http://lists.example/sig" }, "signature_url http://lists.example/sig has no TLS"},
	} {
		s := good
		c.change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), `list "ads" from `) {
			t.Errorf("%+v: %v, want %q", s, err, c.want)
		}
	}
}

// TestLeftovers wants what a killed fetch has left to be removed, but nothing
// that another process may be writing, nor anyone else's file.
func TestLeftovers(t *testing.T) {
	x := newFixture(t, send(listText))
	x.fetch(t)
	dir := filepath.Dir(x.source.Copy)
	old, young, other := filepath.Join(dir, draftPrefix+"1"), filepath.Join(dir, draftPrefix+"2"), filepath.Join(dir, "accepted")
	for _, path := range []string{old, young, other} {
		write(t, path, "x")
	}
	ago := time.Now().Add(-time.Hour)
	for _, path := range []string{old, other} {
		if err := os.Chtimes(path, ago, ago); err != nil {
			t.Fatal(err)
		}
	}
	x.fetch(t)
	if files := x.files(t); len(files) != 4 || files[draftPrefix+"1"] != "" {
		t.Errorf("files: %v", files)
	}
}

// TestNoSpaceForCopy wants an error where no copy can be written.
func TestNoSpaceForCopy(t *testing.T) {
	x := newFixture(t, send(listText))
	x.source.Copy = filepath.Join(t.TempDir(), "file", "copy")
	write(t, filepath.Dir(x.source.Copy), "")
	if _, err := x.fetcher.Fetch(t.Context(), x.source); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("error: %v", err)
	}
}

// TestParallel wants fetches of one copy not to get in each other's way.
func TestParallel(t *testing.T) {
	x := newFixture(t, send(listText, "ETag", `"1"`))
	errs := make(chan error)
	for range 8 {
		go func() {
			_, err := x.fetcher.Fetch(context.Background(), x.source)
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	x.wantCopy(t, listText)
	if files := x.files(t); len(files) != 2 {
		t.Errorf("files: %v", files)
	}
}

// TestNothingGoesOn wants a fetch to leave no connection and no goroutine, which a
// bubble does not end with.
func TestNothingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBubbleFixture(t, send(listText))
		x.fetch(t)
		x.handler.set(answer(500))
		x.wantFault(t, "500", nil)
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// touch changes nothing but the time.
func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.Chtimes(path, time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
}
