package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// Client asks a running gate.
type Client struct {
	http *http.Client
	path string
}

// dialTimeout bounds connecting. What the gate is asked for may take longer.
const dialTimeout = 10 * time.Second

// Dial connects to a gate's socket. Where no gate runs the error is
// ErrNotRunning, where that is not to be known an UnreachableError, which wraps
// fs.ErrPermission if the socket may not be opened.
func Dial(socket string) (*Client, error) {
	if socket == "" {
		return nil, errors.New("a gate cannot be asked ([admin] socket is empty)")
	}
	dial := func(ctx context.Context) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		return dialUnix(ctx, socket)
	}
	first, err := dial(context.Background())
	if err != nil {
		return nil, err
	}
	first.Close()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		// An answer of many lines is read for as long as it takes.
		DisableCompression: true,
	}
	return &Client{http: &http.Client{Transport: transport}, path: socket}, nil
}

// Close gives up the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks for the state of the gate.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.call(ctx, http.MethodGet, "/v1/status", nil, &s)
}

// Generation asks for the number of the lists' state.
func (c *Client) Generation(ctx context.Context) (uint64, error) {
	var g Generation
	return g.Generation, c.call(ctx, http.MethodGet, "/v1/generation", nil, &g)
}

// Rescan has the gate look at all list files, and waits until what has changed is
// live.
func (c *Client) Rescan(ctx context.Context) (r Rescanned, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/rescan", struct{}{}, &r)
}

// Accept has the gate take a list's content though it looks wrong: that of which
// sha256 is the sum (blocklist.ContentSum), or with "" what is held now.
func (c *Client) Accept(ctx context.Context, list, sha256, why string) (a Accepted, err error) {
	return a, c.call(ctx, http.MethodPost, "/v1/lists/"+url.PathEscape(list)+"/accept", AcceptRequest{SHA256: sha256, Why: why, SudoUser: os.Getenv("SUDO_USER")}, &a)
}

// Audit has the gate write to the audit log.
func (c *Client) Audit(ctx context.Context, r AuditRecord) error {
	return c.call(ctx, http.MethodPost, "/v1/audit", r, &struct{}{})
}

// Metrics copies what Prometheus would read.
func (c *Client) Metrics(ctx context.Context, w io.Writer) error {
	response, err := c.send(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(w, response.Body)
	return err
}

// Unused asks which entries of a list have not matched since a day. It calls
// begin once, and then each for every entry; an error of theirs ends it.
func (c *Client) Unused(ctx context.Context, list string, since time.Time, begin func(UnusedHeader) error, each func(UnusedEntry) error) (end UnusedEnd, err error) {
	path := "/v1/lists/" + url.PathEscape(list) + "/unused?since=" + since.UTC().Format(Day)
	response, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return end, err
	}
	defer response.Body.Close()
	in := bufio.NewReaderSize(response.Body, 64<<10)
	var header UnusedHeader
	if err := readLine(in, &header); err != nil {
		return end, err
	}
	if err := begin(header); err != nil {
		return end, err
	}
	for {
		var line struct {
			UnusedEntry
			UnusedEnd
		}
		if err := readLine(in, &line); err != nil {
			return end, err
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

func readLine(in *bufio.Reader, into any) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the gate's answer was cut short: %w", err)
	}
	return json.Unmarshal(line, into)
}

// call sends a request and reads the answer.
func (c *Client) call(ctx context.Context, method, path string, request, result any) error {
	response, err := c.send(ctx, method, path, request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(result); err != nil {
		return fmt.Errorf("asking the gate at %s: its answer cannot be read: %w", c.path, err)
	}
	return nil
}

// send sends a request; the answer is a good one.
func (c *Client) send(ctx context.Context, method, path string, request any) (*http.Response, error) {
	var body io.Reader
	if request != nil {
		text, err := json.Marshal(request)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
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

// failure is why a request has failed, without the URL, which says nothing. That
// the gate has ended meanwhile is as good as that it does not run.
func failure(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w any more: it has ended meanwhile (%w)", ErrNotRunning, err)
	}
	return err
}

// Error is a gate's refusal.
type Error struct {
	Status int    // of HTTP
	Code   string // "no_list", ""
	Text   string
}

func (e *Error) Error() string { return e.Text }

// Unwrap is the sentinel that the code stands for.
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
