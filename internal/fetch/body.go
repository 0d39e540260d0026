package fetch

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// What can be wrong with a body.
var (
	ErrTooLarge = errors.New("it is larger than max_bytes allows")
	ErrCut      = errors.New("it was cut off")
	ErrEmpty    = errors.New("it is empty")
	ErrHTML     = errors.New("it is a web page, not a list: check whether the URL needs a login, or leads to a page about the list")
)

// checkHead checks the header of a response.
func checkHead(res *http.Response, maxBytes int64) error {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err == nil && (kind == "text/html" || kind == "application/xhtml+xml") {
		return ErrHTML
	}
	switch encoding := strings.ToLower(strings.TrimSpace(res.Header.Get("Content-Encoding"))); encoding {
	case "", "identity", "gzip", "x-gzip", "zstd":
	default:
		return fmt.Errorf("the server packed it with %q, which the request did not allow and which cannot be unpacked here", encoding)
	}
	if res.ContentLength > maxBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, res.ContentLength, maxBytes)
	}
	return nil
}

// sniffed is the number of bytes that show whether a body is a web page: those that
// [http.DetectContentType] examines.
const sniffed = 512

// receive copies a body to w. The length is negative if it is not known.
func (f *Fetcher) receive(ctx context.Context, s Source, body io.Reader, length int64, w io.Writer) error {
	f.progress(s.Name, 0, length)
	limited := bufio.NewReaderSize(io.LimitReader(body, s.MaxBytes+1), 64<<10)
	start, _ := limited.Peek(sniffed) // the next Read returns an error again
	if looksLikeHTML(start) {
		return ErrHTML
	}
	meter := &meter{w: w, add: func(done int64) { f.progress(s.Name, done, length) }}
	_, err := io.Copy(meter, onlyReader{limited})
	switch {
	case meter.err != nil:
		return meter.err
	case err != nil && length >= 0:
		return fmt.Errorf("%w (%d of %d bytes received)", bodyError(ctx, err), meter.done, length)
	case err != nil:
		return fmt.Errorf("%w (%d bytes received)", bodyError(ctx, err), meter.done)
	case meter.done == 0:
		return ErrEmpty
	case meter.done > s.MaxBytes:
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, s.MaxBytes)
	}
	return nil
}

// bodyError returns why reading a body failed.
func bodyError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}

// looksLikeHTML reports whether the first bytes are those of a web page. A list may also
// begin with "<", as in "<>"; only the tags of web pages count.
func looksLikeHTML(start []byte) bool {
	start = bytes.TrimPrefix(start, []byte("\uFEFF"))
	kind, _, _ := strings.Cut(http.DetectContentType(start), ";")
	return kind == "text/html" || kind == "text/xml"
}

// meter counts the bytes that are written to w.
type meter struct {
	w    io.Writer
	done int64
	err  error // the error of w
	add  func(done int64)
}

func (m *meter) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	m.done += int64(n)
	m.err = err
	m.add(m.done)
	return n, err
}

// onlyReader hides WriteTo, which would copy too much at once for the progress.
type onlyReader struct{ io.Reader }
