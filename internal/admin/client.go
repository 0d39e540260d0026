package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"spamgate/internal/unixsocket"
)

// Client queries a running gate.
type Client struct {
	http *http.Client
	path string
}

// dialTimeout bounds connecting. A request may take longer.
const dialTimeout = 10 * time.Second

// Dial connects to a gate's socket. If no gate is running the error is ErrNotRunning.
// If that is unknown it is an UnreachableError, which wraps fs.ErrPermission if this
// process may not open the socket.
func Dial(socket string) (*Client, error) {
	if socket == "" {
		return nil, errors.New("cannot query a gate ([admin] socket is empty)")
	}
	dial := func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		return dialSocket(ctx, socket)
	}
	first, err := dial(context.Background())
	if err != nil {
		return nil, err
	}
	first.Close()
	transport := &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableCompression: true,
	}
	return &Client{http: &http.Client{Transport: transport}, path: socket}, nil
}

// dialSocket connects to a gate's socket.
func dialSocket(ctx context.Context, path string) (net.Conn, error) {
	c, err := unixsocket.Dial(ctx, path)
	switch {
	case err == nil:
		return c, nil
	case errors.Is(err, unixsocket.ErrNotSocket):
		return nil, &UnreachableError{path, unixsocket.ErrNotSocket}
	case unixsocket.NobodyAnswers(err):
		return nil, fmt.Errorf("%w (nobody answers on %s)", ErrNotRunning, path)
	case errors.Is(err, fs.ErrPermission):
		return nil, &UnreachableError{path, fmt.Errorf("%w: run this as the gate's user, or set [admin] socket_group and socket_mode", fs.ErrPermission)}
	}
	var failed *net.OpError // may contain a path that is not the socket's
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return nil, &UnreachableError{path, err}
}

// Close closes the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status returns the state of the gate.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.call(ctx, http.MethodGet, "/v1/status", nil, &s)
}

// Generation returns the number of the lists' state.
func (c *Client) Generation(ctx context.Context) (uint64, error) {
	var g Generation
	return g.Generation, c.call(ctx, http.MethodGet, "/v1/generation", nil, &g)
}

// Rescan makes the gate check all list files, and waits until changes are live.
func (c *Client) Rescan(ctx context.Context) (r Rescanned, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/rescan", struct{}{}, &r)
}

// Accept makes the gate accept content of a list that looks wrong: that with the sum
// sha256 (blocklist.ContentSum), or, if it is empty, the held content.
func (c *Client) Accept(ctx context.Context, list, sha256, why string) (a Accepted, err error) {
	return a, c.call(ctx, http.MethodPost, "/v1/lists/"+url.PathEscape(list)+"/accept", AcceptRequest{SHA256: sha256, Why: why, SudoUser: os.Getenv("SUDO_USER")}, &a)
}

// Pin makes the gate pin a list: at the version with the sum sha256, which has so many
// entries, or, if it is empty, at the live version.
func (c *Client) Pin(ctx context.Context, list, sha256 string, entries int, why string) (r PinResult, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/lists/"+url.PathEscape(list)+"/pin", PinRequest{SHA256: sha256, Entries: entries, Why: why, SudoUser: os.Getenv("SUDO_USER")}, &r)
}

// Unpin makes the gate unpin a list.
func (c *Client) Unpin(ctx context.Context, list, why string) (r PinResult, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/lists/"+url.PathEscape(list)+"/unpin", UnpinRequest{Why: why, SudoUser: os.Getenv("SUDO_USER")}, &r)
}

// Audit makes the gate write to the audit log.
func (c *Client) Audit(ctx context.Context, r AuditRecord) error {
	return c.call(ctx, http.MethodPost, "/v1/audit", r, &struct{}{})
}

// Handover makes the gate hand over to a new process, and waits until that serves. The
// timeout 0 is the gate's default.
func (c *Client) Handover(ctx context.Context, timeout time.Duration) (r HandedOver, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/handover", HandoverRequest{timeout.Seconds()}, &r)
}

// Metrics copies the metrics for Prometheus to w.
func (c *Client) Metrics(ctx context.Context, w io.Writer) error {
	response, err := c.send(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(w, response.Body)
	return err
}

// Unused lists the entries of a list without matches since a day, see [Gate]. It calls begin
// once, then each for every entry, and stops at their first error.
func (c *Client) Unused(ctx context.Context, list string, since time.Time, here bool, begin func(UnusedHeader) error, each func(UnusedEntry) error) (end UnusedEnd, err error) {
	path := "/v1/lists/" + url.PathEscape(list) + "/unused?since=" + since.UTC().Format(Day)
	if here {
		path += "&here=true"
	}
	response, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return end, err
	}
	defer response.Body.Close()
	lines := json.NewDecoder(response.Body)
	var header UnusedHeader
	if err := lines.Decode(&header); err != nil {
		return end, incomplete(err)
	}
	if err := begin(header); err != nil {
		return end, err
	}
	for {
		var line struct {
			UnusedEntry
			UnusedEnd
		}
		if err := lines.Decode(&line); err != nil {
			return end, incomplete(err)
		}
		if line.End {
			if line.Error != "" {
				return line.UnusedEnd, errors.New(line.Error)
			}
			return line.UnusedEnd, nil
		}
		if err := each(line.UnusedEntry); err != nil {
			return end, err
		}
	}
}

func incomplete(err error) error { return fmt.Errorf("the gate's response is incomplete: %w", err) }

// call sends a request and decodes the response.
func (c *Client) call(ctx context.Context, method, path string, request, result any) error {
	response, err := c.send(ctx, method, path, request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(result); err != nil {
		return fmt.Errorf("asking the gate at %s: invalid response: %w", c.path, err)
	}
	return nil
}

// send sends a request, and returns a response with status 200.
func (c *Client) send(ctx context.Context, method, path string, request any) (*http.Response, error) {
	var body io.Reader
	if request != nil {
		text, err := json.Marshal(request)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	return c.sendBody(ctx, method, path, body)
}

// sendBody sends a request with a body, and returns a response with status 200.
func (c *Client) sendBody(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://gate"+path, body)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("asking the gate at %s: %w", c.path, failure(err))
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	return nil, errorIn(response)
}

// failure returns why a request failed, without the URL. If the gate has ended
// meanwhile it wraps ErrNotRunning.
func failure(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w any more: it ended meanwhile (%w)", ErrNotRunning, err)
	}
	return err
}

// Error is an error from the gate.
type Error struct {
	Status int    // of HTTP
	Code   string // "no_list", ""
	Text   string
}

func (e *Error) Error() string { return e.Text }

// Unwrap returns the error that the code stands for.
func (e *Error) Unwrap() error {
	for _, c := range codes {
		if c.code == e.Code {
			return c.err
		}
	}
	return nil
}

func errorIn(response *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	var said wireError
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil || said.Error == "" {
		said.Error = strings.TrimSpace(response.Status + ": " + string(text))
	}
	return &Error{response.StatusCode, said.Code, said.Error}
}
