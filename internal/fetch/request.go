package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// patience is how long a server may send nothing, before the answer as well as
// in the middle of a body.
const patience = time.Minute

const maxRedirects = 10

// response is an answer whose body ends with an error once the server has sent
// nothing for too long.
type response struct {
	*http.Response
	Body io.ReadCloser
}

// get asks for a URL of a source, under the conditions of what is known. A
// response is of status 200 or 304.
func (f *Fetcher) get(ctx context.Context, s Source, target string, known state) (*response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	body := &watchedBody{ctx: ctx, cancel: cancel}
	body.timer = time.AfterFunc(patience, func() {
		cancel(fmt.Errorf("the server sent nothing for %v", patience))
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		body.stop()
		return nil, err
	}
	req.Header.Set("User-Agent", f.userAgent)
	req.Header.Set("Accept-Encoding", "identity")
	setCondition(req, "If-None-Match", known.ETag)
	setCondition(req, "If-Modified-Since", known.LastModified)
	client := http.Client{Transport: f.transportFor(s), CheckRedirect: s.checkRedirect}
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
	return &response{res, body}, nil
}

// transportFor returns the transport for a source, which may trust others than the
// rest.
func (f *Fetcher) transportFor(s Source) *http.Transport {
	if s.RootCAs == nil {
		return f.transport
	}
	t := f.transport.Clone()
	t.TLSClientConfig.RootCAs = s.RootCAs
	return t
}

// setCondition sends back what the server once gave, if that may be sent.
func setCondition(req *http.Request, name, value string) {
	if value != "" && httpguts.ValidHeaderFieldValue(value) {
		req.Header.Set(name, value)
	}
}

// checkRedirect lets no redirect lead away from https.
func (s Source) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects, the last one to %s", maxRedirects, shown(req.URL))
	}
	plain := req.URL.Scheme == "http" && s.AllowHTTP && via[len(via)-1].URL.Scheme == "http"
	if req.URL.Scheme != "https" && !plain {
		return fmt.Errorf("redirected to %s, which is not https: find the list's https URL", shown(req.URL))
	}
	return nil
}

// requestError says why there is no answer, without the URL, which the caller
// names.
func requestError(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.As(err, new(x509.UnknownAuthorityError)) {
		return fmt.Errorf("%w; if it is one of your own, tls_ca names a PEM file with the authority", err)
	}
	return err
}

// watchedBody is a body that ends the request when the timer runs out.
type watchedBody struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// Read takes no end for good once the request is given up: a server that is told
// so while it has more to send may well end the body in good order.
func (b *watchedBody) Read(p []byte) (int, error) {
	b.timer.Reset(patience)
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

// StatusError is an answer that is no success.
type StatusError struct {
	Code int

	// RetryAfter is for how long the server wants to be left alone; 0: it does
	// not say.
	RetryAfter time.Duration
}

func (e *StatusError) Error() string {
	text := strings.TrimSpace(strconv.Itoa(e.Code) + " " + http.StatusText(e.Code))
	switch {
	case e.Code == http.StatusNotFound || e.Code == http.StatusGone:
		return "the server answered " + text + ": check the URL"
	case e.Code == http.StatusUnauthorized || e.Code == http.StatusForbidden:
		return "the server answered " + text + ": ask whoever publishes the list for access"
	default:
		return "the server answered " + text
	}
}

// retryAfter reads the header field of that name, RFC 9110, section 10.2.3: a
// number of seconds or a date.
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
