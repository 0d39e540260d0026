package fetch

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// unending answers without a length, so that the body ends with the connection.
func unending(text string, header ...string) http.HandlerFunc {
	head := "HTTP/1.1 200 OK\r\nConnection: close\r\n"
	for i := 0; i < len(header); i += 2 {
		head += header[i] + ": " + header[i+1] + "\r\n"
	}
	return raw(head + "\r\n" + text)
}

// http10 answers as a server of HTTP/1.0, whose chunks are not chunks.
func http10(text string) http.HandlerFunc {
	return raw("HTTP/1.0 200 OK\r\nETag: \"1\"\r\nTransfer-Encoding: chunked\r\n\r\n" + text)
}

// TestUnknownEnd has bodies that end with their connection: they are taken, but the next
// fetch gets the list again, whatever the server called that version.
func TestUnknownEnd(t *testing.T) {
	const date = "Sat, 01 Aug 2026 10:00:00 GMT"
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			for _, cut := range []http.HandlerFunc{
				unending(listText[:18], "ETag", `"1"`, "Last-Modified", date), http10(listText[:18]),
			} {
				x := start(t, cut)
				if status := x.fetch(t); status.ETag != "" || status.LastModified != "" {
					t.Errorf("status %+v", status)
				}
				x.wantCopy(t, listText[:18])
				x.handler.set(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since") != "" {
						w.WriteHeader(http.StatusNotModified)
						return
					}
					send(listText, "ETag", `"1"`, "Last-Modified", date)(w, r)
				})
				if status := x.fetch(t); status.NotModified || status.ETag != `"1"` {
					t.Errorf("status %+v", status)
				}
				x.wantCopy(t, listText)
				if status := x.fetch(t); !status.NotModified {
					t.Errorf("status %+v", status)
				}
			}
		})
	}
}

// servers start a fixture with TLS and without.
var servers = map[string]func(t *testing.T, h http.HandlerFunc) *fixture{
	"https": func(t *testing.T, h http.HandlerFunc) *fixture { return newFixture(t, h) },
	"http":  newPlainFixture,
}

// newPlainFixture serves without TLS.
func newPlainFixture(t *testing.T, h http.HandlerFunc) *fixture {
	x := &fixture{}
	x.handler.set(h)
	x.server = httptest.NewServer(&x.handler)
	x.start(t)
	x.source.AllowHTTP = true
	return x
}

// TestTorn has later versions of a list, of which some are cut off.
func TestTorn(t *testing.T) {
	lines := strings.Repeat("x.example.com # one more\n", 3000)
	packed, inJSON := gzipped(lines), `["`+strings.Repeat(`x.example.com","`, 2000)+"\"]"
	for _, c := range []struct {
		name, before, current string
		want                  string // of an unknown end; empty: taken
	}{
		{"whole", lines, listText, ""},
		{"in a line", lines, lines[:len(lines)-7], "it does not end in a newline, as the copy does"},
		{"before the last newline", lines, lines[:len(lines)-1], "run spamgate lists fetch ads --force"},
		{"in a line, as before", listText[:17], lines[:70], ""},
		{"packed", packed, gzipped(listText), ""},
		{"packed, cut", packed, packed[:len(packed)-1], "the gzip file is cut short"},
		{"packed, cut in its header", packed, packed[:5], "the gzip file is cut short"},
		{"packed, cut before it was packed", packed, gzipped(lines[:500]), ""}, // 500 is the end of a line
		{"packed, cut in a line before it was packed", packed, gzipped(lines[:510]), "it does not end in a newline"},
		{"packed from now on", lines, packed, ""},
		{"no longer packed", packed, lines[:510], "it does not end in a newline"},
		{"JSON", inJSON + "\n", inJSON, ""},
		{"JSON, cut", inJSON, inJSON[:600], "the JSON text ends in the middle"},
		{"JSON, cut at a comma", inJSON, inJSON[:len(`["x.example.com",`)], "the JSON text ends in the middle"},
		{"JSON for the first time, cut", "", "[\n", "the JSON text ends in the middle"},
		{"NDJSON", `{"a":1}` + "\n", `{"a":1}` + "\n" + `{"a":2}`, ""},
		{"NDJSON, cut", `{"a":1}` + "\n", `{"a":1}` + "\n" + `{"a"`, "the JSON text ends in the middle"},
		{"an address literal, cut", "[192.0.2.1]\n", "[192.0.2.1", "it does not end in a newline"},
		{"zip", lines, "PK\x03\x04xyz", ""}, // its reader refuses it
	} {
		for name, start := range servers {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				x := start(t, send(c.before))
				if c.before != "" {
					x.fetch(t)
				}
				x.handler.set(unending(c.current))
				if c.want == "" {
					x.fetch(t)
					x.wantCopy(t, c.current)
					return
				}
				for range 2 { // it does not help that it is the same again
					x.wantFault(t, c.want, nil)
				}
				x.source.Force = true
				if strings.Contains(c.want, "newline") || strings.Contains(c.want, "--force") {
					x.fetch(t)
					x.wantCopy(t, c.current)
				} else {
					x.wantFault(t, c.want, ErrCut)
				}
			})
		}
	}
}

// TestTornAtPublisher has a list that seems cut off though it arrived whole: it may just be
// written. It is taken once it is the same again.
func TestTornAtPublisher(t *testing.T) {
	x := newFixture(t, send(listText))
	x.fetch(t)
	for _, text := range []string{listText + "example.co", listText + "example.com\nexam"} {
		x.handler.set(send(text, "ETag", `"2"`))
		if _, err := x.fetcher.Fetch(t.Context(), x.source); !errors.Is(err, ErrTorn) || !strings.Contains(err.Error(), "if the server sends the same again") {
			t.Errorf("error: %v", err)
		}
		x.wantCopy(t, listText)
	}
	if status := x.fetch(t); status.ETag != `"2"` {
		t.Errorf("status %+v", status)
	}
	x.wantCopy(t, listText+"example.com\nexam")
	x.handler.set(send(gzipped(listText)))
	x.fetch(t)
}

// TestTornOfAnother has a copy that is not this URL's, and so says nothing of it.
func TestTornOfAnother(t *testing.T) {
	x := newFixture(t, send(listText))
	x.fetch(t)
	x.source.URL += "?other"
	x.handler.set(unending(otherText[:10]))
	x.fetch(t)
	x.wantCopy(t, otherText[:10])
}

// TestSignedEnd has a signature that shows that a body is whole, however it ended.
func TestSignedEnd(t *testing.T) {
	public, private := newKey(t)
	text := listText + "example.edu" // without a newline
	x := newFixture(t, signed(listText, sign(private, listText)))
	x.source.PublicKey = public.String()
	x.fetch(t)
	x.handler.set(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, signatureSuffix) {
			w.Write(sign(private, text))
			return
		}
		unending(text, "ETag", `"1"`)(w, r)
	})
	if status := x.fetch(t); status.ETag != `"1"` {
		t.Errorf("status %+v", status)
	}
	x.wantCopy(t, text)
}

// TestNoCloseNotify has a server that drops the connection without the alert that ends TLS,
// which crypto/tls accepts: without a length the end is not known, as without TLS.
func TestNoCloseNotify(t *testing.T) {
	drop := func(text, header string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nETag: \"1\"\r\n"+header+"\r\n"+text)
			under := conn.(*tls.Conn).NetConn().(*net.TCPConn)
			under.CloseWrite()
			io.Copy(io.Discard, under)
			under.Close()
		}
	}
	x := newFixture(t, drop(listText, "Content-Length: 36\r\n"))
	if status := x.fetch(t); status.ETag != `"1"` {
		t.Errorf("status %+v", status)
	}
	x.handler.set(drop(listText[:30], "Connection: close\r\n"))
	x.wantFault(t, "does not end in a newline", ErrTorn)
	x.handler.set(drop(listText[:18], "Connection: close\r\n"))
	if status := x.fetch(t); status.ETag != "" {
		t.Errorf("status %+v", status)
	}
	x.wantCopy(t, listText[:18])
}

// TestEndOf asks for the ends of odd files.
func TestEndOf(t *testing.T) {
	var twice bytes.Buffer
	z := gzip.NewWriter(&twice)
	io.WriteString(z, gzipped(listText))
	z.Close()
	for _, c := range []struct {
		text string
		want ending
	}{
		{"", anyEnd}, {"\n", newlineAtEnd}, {"x", noNewline}, {"x\r\n", newlineAtEnd}, {"x\r", noNewline},
		{strings.Repeat("x", 512) + "\n", newlineAtEnd}, {strings.Repeat("x\n", 40000) + "x", noNewline},
		{gzipped("x\n"), newlineAtEnd}, {gzipped("x"), noNewline}, {gzipped("[]"), anyEnd}, {twice.String(), anyEnd},
		{"\uFEFF[]", anyEnd}, {"\uFEFF[\"a\"]\n ", anyEnd}, {"BZh91AY&SY\n", anyEnd},
	} {
		got, err := endOf(io.NewSectionReader(strings.NewReader(c.text), 0, int64(len(c.text))), false, 1<<20)
		if err != nil || got != c.want {
			t.Errorf("%.20q: %v, %v; want %v", c.text, got, err, c.want)
		}
	}
}

// FuzzEndOf checks that a text without packing ends as its last byte says, and that no
// beginning of a JSON array counts as whole.
func FuzzEndOf(f *testing.F) {
	f.Add([]byte(listText))
	f.Add([]byte(`["a", {"b": [1]}]`))
	f.Add([]byte(gzipped(listText)))
	f.Fuzz(func(t *testing.T, text []byte) {
		section := func() *io.SectionReader { return io.NewSectionReader(bytes.NewReader(text), 0, int64(len(text))) }
		got, err := endOf(section(), false, 1<<16)
		if err == nil && got == noNewline && len(text) > 0 && text[len(text)-1] == '\n' && !bytes.HasPrefix(text, []byte("\x1f\x8b")) && !bytes.HasPrefix(text, []byte("\x28\xb5\x2f\xfd")) && text[0]&0xF0 != 0x50 {
			t.Errorf("%q ends in a newline", text)
		}
		if sure, err := endOf(section(), true, 1<<16); err != nil || sure == noNewline && got == newlineAtEnd {
			t.Errorf("%q: %v, %v; not sure: %v", text, sure, err, got)
		}
	})
}

// TestTornCopyMissing has a copy that cannot be read.
func TestTornCopyMissing(t *testing.T) {
	x := newFixture(t, send(listText))
	x.fetch(t)
	if err := os.Remove(x.source.Copy); err != nil {
		t.Fatal(err)
	}
	x.handler.set(unending(listText[:20]))
	x.fetch(t)
	x.wantCopy(t, listText[:20])
}
