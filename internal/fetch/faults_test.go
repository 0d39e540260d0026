package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/blocklist/listfile"
)

// faults are servers that misbehave.
var faults = []struct {
	name    string
	handler http.HandlerFunc
	want    string // a part of the error
	is      error
}{
	{name: "404", handler: answer(404), want: "404 Not Found: check the URL"},
	{name: "410", handler: answer(410), want: "410 Gone: check the URL"},
	{name: "403", handler: answer(403), want: "403 Forbidden: ask"},
	{name: "500", handler: answer(500), want: "500 Internal Server Error"},
	{name: "503", handler: answer(503, "Retry-After", "7200"), want: "503 Service Unavailable"},
	{name: "a status without a name", handler: answer(599), want: "answered 599"},
	{name: "204", handler: answer(204), want: "204 No Content"},
	{name: "206", handler: answer(206), want: "206 Partial Content"},
	{name: "300 without a place", handler: answer(300), want: "300 Multiple Choices"},
	{name: "empty", handler: send(""), want: "empty", is: ErrEmpty},
	{name: "empty, of unknown length", handler: flushed(""), want: "empty", is: ErrEmpty},
	{name: "HTML by type", handler: send(listText, "Content-Type", "text/html; charset=utf-8"), want: "web page", is: listfile.ErrNotList},
	{name: "XHTML by type", handler: send(listText, "Content-Type", "Application/XHTML+xml"), want: "web page", is: listfile.ErrNotList},
	{name: "HTML by its start", handler: send("\n<!DOCTYPE html>\n<title>Log in</title>"), want: "web page", is: listfile.ErrNotList},
	{name: "HTML behind a byte order mark", handler: send("\uFEFF<html>"), want: "web page", is: listfile.ErrNotList},
	{name: "XML", handler: send("<?xml version='1.0'?>"), want: "web page", is: listfile.ErrNotList},
	{name: "HTML after 720 bytes of comment", handler: send("<!--" + strings.Repeat("x", 720) + "-->\n<html>"), want: "a web page", is: listfile.ErrNotList},
	{name: "HTML after 720 bytes of white space", handler: send(strings.Repeat(" \n", 360) + "<html>"), want: "a web page", is: listfile.ErrNotList},
	{name: "HTML after 3,000 bytes of # comments", handler: send(strings.Repeat("# terms\n", 375) + "<html>"), want: "a web page", is: listfile.ErrNotList},
	{name: "HTML, packed unasked", handler: send(gzipped("<!doctype html>"), "Content-Encoding", "gzip"), want: "a web page", is: listfile.ErrNotList},
	{name: "an error in JSON", handler: send(`{"error":"rate limit exceeded"}`), want: `a server's message: {"error":"rate limit exceeded"}; check whether the URL is right`, is: listfile.ErrNotList},
	{name: "a problem by type", handler: send(`{"x":1}`, "Content-Type", "application/problem+json"), want: "a server's message", is: listfile.ErrNotList},
	{name: "redirect to nowhere", handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/%zz?token=secret")
		w.WriteHeader(http.StatusFound)
	}, want: "redirects to an invalid URL"},
	{name: "cut short", handler: send(listText, "Content-Length", "4000"), want: "cut off (36 of 4000 bytes received)", is: ErrCut},
	{name: "cut at once", handler: send("", "Content-Length", "4000"), want: "cut off (0 of 4000 bytes received)", is: ErrCut},
	{name: "cut, of unknown length", handler: abortAfter(listText), want: "cut off", is: ErrCut},
	{name: "larger than allowed, and it says so", handler: send(strings.Repeat("x", 5000), "Content-Length", "5000"), want: "5000 bytes, at most 4096", is: ErrTooLarge},
	{name: "it says that it is larger", handler: send("", "Content-Length", "1099511627776"), want: "1099511627776 bytes, at most", is: ErrTooLarge},
	{name: "endless", handler: endless, want: "more than 4096 bytes", is: ErrTooLarge},
	{name: "packed with brotli", handler: send(listText, "Content-Encoding", "br"), want: `packed it with "br"`},
	{name: "packed twice", handler: send(listText, "Content-Encoding", "gzip, gzip"), want: `packed it with "gzip, gzip"`},
	{name: "redirect loop", handler: redirectTo("/list.txt"), want: "more than 10 redirects"},
	{name: "redirect to http", handler: redirectTo("http://192.0.2.1/list.txt?token=secret"), want: "redirected to http://192.0.2.1/list.txt?..., which is not https"},
	{name: "redirect to a file", handler: redirectTo("file:///etc/passwd"), want: "redirected to file:///etc/passwd, which is not https"},
	{name: "no HTTP", handler: raw("220 mail.example ESMTP\r\n"), want: "malformed HTTP"},
	{name: "closed without a word", handler: raw(""), want: "EOF"},
	{name: "a header without an end", handler: raw("HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", 10000)), want: "response header"},
	{name: "two lengths", handler: raw("HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde"), want: "Content-Length"},
}

// TestFaults wants an error that says what is wrong, and the copy and its state as
// they were, whether there were any or not.
func TestFaults(t *testing.T) {
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			x := newFixture(t, c.handler)
			x.source.MaxBytes = 4096
			x.wantFault(t, c.want, c.is)

			x.handler.set(send(listText, "ETag", `"1"`))
			good := x.fetch(t)
			x.handler.set(c.handler)
			status := x.wantFault(t, c.want, c.is)
			x.wantCopy(t, listText)
			if !status.LastGood.Equal(good.LastGood) || status.ETag != `"1"` || status.Failures != 1 {
				t.Errorf("status %+v", status)
			}
		})
	}
}

// wantFault fetches and wants an error, with every file as it was.
func (x *fixture) wantFault(t *testing.T, want string, is error) Status {
	t.Helper()
	before := x.files(t)
	status, err := x.fetcher.Fetch(t.Context(), x.source)
	if err == nil || !strings.Contains(err.Error(), want) || is != nil && !errors.Is(err, is) {
		t.Errorf("error: %v; want %q, %v", err, want, is)
	} else if strings.Contains(err.Error(), "secret") {
		t.Errorf("a token in: %v", err)
	} else if !strings.HasPrefix(err.Error(), `list "ads" from `+x.source.ShownURL()) {
		t.Errorf("error: %v", err)
	}
	if status.Err != err {
		t.Errorf("status says %v", status.Err)
	}
	if after := x.files(t); !maps.Equal(before, after) {
		t.Errorf("files before: %v\nafter: %v", before, after)
	}
	return status
}

// TestFaults304 has a server that says Not Modified where nobody has asked.
func TestFaults304(t *testing.T) {
	x := newFixture(t, answer(304))
	x.wantFault(t, "304 Not Modified to a request without conditions", nil)
}

// TestUnreachable wants an error that says so where nothing listens.
func TestUnreachable(t *testing.T) {
	x := newFixture(t, send(listText))
	// The port of a connection's other end: nobody listens there, nor can begin to.
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}}
	c, err := from.Dial("tcp", x.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	x.source.URL = "https://" + c.LocalAddr().String() + "/list.txt"
	x.wantFault(t, "refused", nil)
}

// TestUnknownAuthority wants a server that nobody vouches for to be refused.
func TestUnknownAuthority(t *testing.T) {
	x := newFixture(t, send(listText))
	x.fetcher = New(Options{})
	x.wantFault(t, "certificate signed by unknown authority; if it is your own, set tls_ca to a PEM file with its certificate", nil)
}

// TestSourceRoots wants a source to be fetched from a server that its own
// authorities vouch for, and from no other.
func TestSourceRoots(t *testing.T) {
	x := newFixture(t, send(listText))
	roots := x.fetcher.transport.TLSClientConfig.RootCAs
	x.fetcher = New(Options{RootCAs: x509.NewCertPool()})
	x.source.RootCAs = roots
	if _, err := x.fetcher.Fetch(t.Context(), x.source); err != nil {
		t.Fatal(err)
	}
	x.fetcher = New(Options{RootCAs: roots})
	x.source.RootCAs = x509.NewCertPool()
	x.wantFault(t, "unknown authority", nil)
}

// TestSame wants authorities that were read again to be no change.
func TestSame(t *testing.T) {
	x := newFixture(t, send(listText))
	pool := func() *x509.CertPool {
		p := x509.NewCertPool()
		p.AddCert(x.server.Certificate())
		return p
	}
	a, b, none, other := x.source, x.source, x.source, x.source
	a.RootCAs, b.RootCAs, other.RootCAs, other.URL = pool(), pool(), pool(), "https://lists.example/"
	if !a.same(b) || a.same(none) || none.same(a) || !none.same(none) || a.same(other) {
		t.Error(a.same(b), a.same(none), none.same(a), none.same(none), a.same(other))
	}
}

// TestPlainHTTP wants http only where it is allowed, and then no way back to it
// from https.
func TestPlainHTTP(t *testing.T) {
	plain := httptest.NewServer(send(otherText))
	defer plain.Close()
	back := httptest.NewServer(redirectTo(plain.URL))
	defer back.Close()

	x := newFixture(t, redirectTo(plain.URL))
	x.source.AllowHTTP = true
	x.wantFault(t, "which is not https", nil)

	x.source.URL = back.URL
	x.fetch(t)
	x.wantCopy(t, otherText)

	x.source.AllowHTTP = false
	x.wantFault(t, "set allow_http = true", nil)
}

// TestRedirects wants ten of them to be followed, and no more.
func TestRedirects(t *testing.T) {
	var redirects int
	x := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
		if n := len(r.URL.Path) - len("/"); n < redirects {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
			return
		}
		send(listText)(w, r)
	})
	x.source.URL = x.server.URL + "/"
	redirects = maxRedirects
	x.fetch(t)
	x.wantCopy(t, listText)
	redirects++
	x.wantFault(t, "more than 10 redirects, the last one to "+x.server.URL+"/xxxxxxxxxxx", nil)
}

// TestEndAfterCancel wants a body that ends in good order, once it was told that
// nobody waits for more, not to pass for whole.
func TestEndAfterCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	b := &watchedBody{
		ReadCloser: io.NopCloser(strings.NewReader(listText)),
		ctx:        ctx, cancel: cancel, timer: time.NewTimer(stallTimeout),
	}
	defer b.Close()
	cause := errors.New("too slow")
	cancel(cause)
	if text, err := io.ReadAll(b); err != cause {
		t.Errorf("%q, %v", text, err)
	}
}

// TestSlow has servers that take their time.
func TestSlow(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string // empty: success
	}{
		{"no answer", stallAfter(""), "the server sent nothing for 1m0s"},
		{"stalls", stallAfter(listText), "the server sent nothing for 1m0s (36 bytes received)"},
		{"stalls behind the start", stallAfter(strings.Repeat(listText, 100)), "the server sent nothing for 1m0s (3600 bytes received)"},
		{"slow, but comes to an end", trickle(50*time.Second, 5), ""},
		{"slow, and takes too long", trickle(50*time.Second, 500), "not complete after 5m0s: set a longer timeout"},
		{"slow redirects", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Second)
			redirectTo("/list.txt")(w, r)
		}, "the server sent nothing for 1m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x := newBubbleFixture(t, c.handler)
				if c.want == "" {
					x.fetch(t)
				} else {
					x.wantFault(t, c.want, nil)
				}
			})
		})
	}
}

// TestInterrupted wants a fetch to end with its context, and to leave nothing.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBubbleFixture(t, stallAfter(listText))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := x.fetcher.Fetch(ctx, x.source)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error: %v", err)
		}
		if files := x.files(t); len(files) != 0 {
			t.Errorf("left: %v", files)
		}
	})
}

// flushed answers without a length.
func flushed(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		io.WriteString(w, text)
	}
}

// abortAfter breaks the connection off.
func abortAfter(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		flushed(text)(w, r)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// stallAfter sends a text, and then nothing for as long as someone waits.
func stallAfter(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if text != "" {
			io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

// trickle sends a line in each interval.
func trickle(interval time.Duration, lines int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := range lines {
			if _, err := fmt.Fprintf(w, "%d.example.com\n", i); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			select {
			case <-time.After(interval):
			case <-r.Context().Done():
				return
			}
		}
	}
}

func gzipped(text string) string {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte(text))
	z.Close()
	return packed.String()
}

func endless(w http.ResponseWriter, _ *http.Request) {
	for {
		if _, err := io.WriteString(w, "example.com\n"); err != nil {
			return
		}
	}
}

func redirectTo(place string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, place, http.StatusFound) }
}

// raw answers with bytes that need not be HTTP.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		io.WriteString(conn, text)
	}
}
