package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"spamgate/blocklist/listfile"
)

// What can be wrong with a body.
var (
	ErrTooLarge = errors.New("it is larger than max_bytes allows")
	ErrCut      = errors.New("it was cut off")
	ErrEmpty    = errors.New("it is empty")
)

// checkHead checks the header of a response.
func checkHead(res *http.Response, maxBytes int64) error {
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case err != nil:
	case kind == "text/html" || kind == "application/xhtml+xml":
		return notList(fmt.Errorf("%w but a web page", listfile.ErrNotList))
	case kind == "application/problem+json" || kind == "application/problem+xml": // RFC 9457
		return notList(fmt.Errorf("%w but a server's message", listfile.ErrNotList))
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

// receive copies a body to w. The length is negative if it is not known.
func (f *Fetcher) receive(ctx context.Context, s Source, body io.Reader, length int64, w io.Writer) error {
	f.progress(s.Name, 0, length)
	meter := &meter{w: w, add: func(done int64) { f.progress(s.Name, done, length) }}
	_, err := io.Copy(meter, io.LimitReader(body, s.MaxBytes+1))
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

// checkContent checks that a body is not what some servers send in place of a list. A
// body that cannot be unpacked is the reader's business.
func checkContent(d *draft) error {
	if err := listfile.CheckList(d.reader()); errors.Is(err, listfile.ErrNotList) {
		return notList(err)
	}
	return nil
}

// notList adds what to do to a [listfile.ErrNotList].
func notList(err error) error {
	return fmt.Errorf("%w; check whether the URL is right, and whether it needs a login or a key", err)
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
