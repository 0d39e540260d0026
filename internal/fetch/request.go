package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/net/http/httpguts"

	"spamgate/internal/text"
)

// stallTimeout is how long a server may send nothing, before the response or within a
// body.
const stallTimeout = time.Minute

const maxRedirects = 10

// condition is what is known of a version, so that a server need not send it again.
type condition struct {
	etag, lastModified string

	// prefer is a preference for the server (RFC 7240); empty means none.
	prefer string
}

// get requests a URL of a source, unless it is what the condition says. The response
// has status 200 or 304, and its body fails once the server stalls.
func (f *Fetcher) get(ctx context.Context, s Source, target string, unless condition) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	body := &watchedBody{ctx: ctx, cancel: cancel}
	body.timer = time.AfterFunc(stallTimeout, func() {
		cancel(fmt.Errorf("the server sent nothing for %v", stallTimeout))
	})
	r := &route{}
	req, err := http.NewRequestWithContext(context.WithValue(ctx, routeKey{}, r), http.MethodGet, target, nil)
	if err != nil {
		body.stop()
		return nil, err
	}
	req.Header.Set("User-Agent", f.userAgent)
	req.Header.Set("Accept-Encoding", encodings(req.URL))
	setField(req, "If-None-Match", unless.etag)
	setField(req, "If-Modified-Since", unless.lastModified)
	setField(req, "Prefer", unless.prefer)
	client := http.Client{Transport: f.transportFor(s), CheckRedirect: func(req *http.Request, via []*http.Request) error {
		f.redirect(ctx, r, via[0].URL)
		return s.checkRedirect(req, via)
	}}
	res, err := client.Do(req)
	if err != nil {
		defer body.stop()
		return nil, requestError(ctx, err)
	}
	body.ReadCloser = res.Body
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusNotModified {
		body.Close()
		return nil, &StatusError{Code: res.StatusCode, RetryAfter: retryAfter(res.Header.Get("Retry-After"), time.Now())}
	}
	res.Body = body
	return res, unpack(res, req)
}

// encodings returns which content encodings a request asks for: zstd, unless the file itself is
// packed. Servers declare that as an encoding, too.
func encodings(u *url.URL) string {
	switch path.Ext(u.Path) {
	case ".gz", ".zst":
		return "identity"
	}
	return "zstd"
}

// maxZstdWindow is how far back a body may refer: RFC 9659 permits 8 MiB.
const maxZstdWindow = 8 << 20

// unpack has the body of a response read unpacked, if it is packed as the request asked.
func unpack(res *http.Response, req *http.Request) error {
	if !strings.EqualFold(strings.TrimSpace(res.Header.Get("Content-Encoding")), "zstd") || req.Header.Get("Accept-Encoding") != "zstd" {
		return nil
	}
	z, err := zstd.NewReader(res.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
	if err != nil {
		return err
	}
	res.Header.Del("Content-Encoding")
	res.Uncompressed = true
	res.Body = &unpackedBody{z, res.Body}
	return nil
}

// unpackedBody is the content of a packed body.
type unpackedBody struct {
	*zstd.Decoder
	packed io.Closer
}

func (b *unpackedBody) Close() error {
	b.Decoder.Close()
	return b.packed.Close()
}

// certainAge is how much older than Date a Last-Modified must be: a second (RFC 9110, section
// 8.8.2.2), and what the clocks of a file server and its HTTP server may differ.
const certainAge = time.Minute

// lastModified returns the Last-Modified of a response, or "" if it does not identify the version:
// the list may have changed again in that second, after it was sent. The server would confirm the
// old version for good.
func lastModified(h http.Header) string {
	modified, err := http.ParseTime(h.Get("Last-Modified"))
	if err != nil {
		return ""
	}
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil || date.Sub(modified) < certainAge {
		return ""
	}
	return h.Get("Last-Modified")
}

// transportFor returns the transport for a source, which may have its own authorities.
func (f *Fetcher) transportFor(s Source) *http.Transport {
	if s.RootCAs == nil {
		return f.transport
	}
	t := f.transport.Clone()
	t.TLSClientConfig.RootCAs = s.RootCAs
	return t
}

// setCondition sets a header field to a value from the server, if that is valid.
func setField(req *http.Request, name, value string) {
	if value != "" && httpguts.ValidHeaderFieldValue(value) {
		req.Header.Set(name, value)
	}
}

// checkRedirect refuses redirects away from https. The next server does not learn the URL of
// the one before, which may contain a token.
func (s Source) checkRedirect(req *http.Request, via []*http.Request) error {
	req.Header.Del("Referer")
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects, the last one to %s", maxRedirects, text.ShownURL(req.URL.String()))
	}
	plain := req.URL.Scheme == "http" && s.AllowHTTP && via[len(via)-1].URL.Scheme == "http"
	if req.URL.Scheme != "https" && !plain {
		return fmt.Errorf("redirected to %s, which is not https: use the list's https URL", text.ShownURL(req.URL.String()))
	}
	return nil
}

// requestError returns why there is no response, without the URL, which the caller adds.
func requestError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if redirect := (*RedirectError)(nil); errors.As(err, &redirect) {
		return redirect
	}
	if strings.HasPrefix(err.Error(), "failed to parse Location header") { // and has its query
		return errors.New("the server redirects to an invalid URL")
	}
	if errors.As(err, new(x509.UnknownAuthorityError)) {
		return fmt.Errorf("%w; if it is your own, set tls_ca to a PEM file with its certificate", err)
	}
	return err
}

// watchedBody is a body that cancels the request when its timer fires.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// Read returns an error for any end of the body once the request is cancelled: a server
// may then end the body as if it were complete.
func (b *watchedBody) Read(p []byte) (int, error) {
	b.timer.Reset(stallTimeout)
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
	}
	return n, err
}

func (b *watchedBody) Close() error {
	defer b.stop()
	return b.ReadCloser.Close()
}

func (b *watchedBody) stop() {
	b.timer.Stop()
	b.cancel(nil)
}

// StatusError is a response without success.
type StatusError struct {
	Code int

	// RetryAfter is how long the server asks to wait; 0 means it does not say.
	RetryAfter time.Duration
}

func (e *StatusError) Error() string {
	status := strings.TrimSpace(strconv.Itoa(e.Code) + " " + http.StatusText(e.Code))
	switch {
	case e.Code == http.StatusNotFound || e.Code == http.StatusGone:
		return "the server answered " + status + ": check the URL"
	case e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden:
		return "the server answered " + status + ": ask the list's publisher for access"
	default:
		return "the server answered " + status
	}
}

// retryAfter parses the header field Retry-After, RFC 9110, section 10.2.3: a number of
// seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	const most = 1 << 32 // seconds, far from an overflow
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		return time.Duration(min(seconds, most)) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}
