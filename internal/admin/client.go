package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"spamgate/internal/managed"
	"spamgate/internal/operation"
	"spamgate/internal/unixsocket"
)

// Client queries a running gate.
type Client struct {
	http *http.Client
	path string

	direct *Server // does the operations in this process; see Direct
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

// Direct returns a client without a gate: this process does the edits that it asks for.
func Direct(e *managed.Editor) *Client {
	return &Client{direct: &Server{options: Options{Editor: e}, log: slog.New(slog.DiscardHandler)}}
}

// Call has the gate do an operation, and returns its reply. An operation on a list takes its name.
func Call[Request, Reply any](ctx context.Context, c *Client, op *operation.Operation[*call, Request, Reply], request Request, list ...string) (result Reply, err error) {
	if c.direct != nil {
		return op.Do(&call{Server: c.direct, ctx: ctx, list: strings.Join(list, "")}, request)
	}
	response, err := send(ctx, c, op, request, list...)
	if err != nil {
		return result, err
	}
	defer response.Close()
	if err := response.lines.Decode(&result); err != nil {
		return result, fmt.Errorf("asking the gate at %s: invalid response: %w", c.path, err)
	}
	return result, nil
}

// send sends the request of an operation, and returns a response with status 200.
func send[Request, Reply any](ctx context.Context, c *Client, op *operation.Operation[*call, Request, Reply], request Request, list ...string) (*reply, error) {
	if q, ok := any(&request).(interface{ fill() }); ok {
		q.fill()
	}
	to := "http://gate" + strings.Replace(op.Path, "{name}", url.PathEscape(strings.Join(list, "")), 1)
	var body io.Reader
	if q, ok := any(&request).(coded); ok {
		var query url.Values
		query, body = q.encode()
		to += "?" + query.Encode()
	} else if op.Method == http.MethodPost {
		text, err := json.Marshal(request)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, op.Method, to, body)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("asking the gate at %s: %w", c.path, failure(err))
	}
	if response.StatusCode == http.StatusOK {
		return &reply{response.Body, json.NewDecoder(response.Body)}, nil
	}
	defer response.Body.Close()
	return nil, errorIn(response)
}

// Content copies the text of a managed list to w.
func (c *Client) Content(ctx context.Context, list string, w io.Writer) (err error) {
	var content io.ReadCloser
	if c.direct != nil {
		content, err = c.direct.options.Editor.Open(list)
	} else {
		content, err = send(ctx, c, opContent, None{}, list)
	}
	if err != nil {
		return err
	}
	defer content.Close()
	if _, err = io.Copy(w, content); err != nil && c.direct == nil {
		err = incomplete(err)
	}
	return err
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
	var message wireError
	if err == nil {
		err = json.Unmarshal(text, &message)
	}
	if err != nil || message.Error == "" {
		message.Error = strings.TrimSpace(response.Status + ": " + string(text))
	}
	return &Error{response.StatusCode, message.Code, message.Error}
}
