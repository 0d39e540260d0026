package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/operation"
	"spamgate/internal/text"
)

// call is one request of an operation.
type call struct {
	*Server
	ctx  context.Context
	list string // in the path
	peer Peer

	// w and r are nil in a [Direct] client. begun says that the response is not JSON, and was begun.
	w     http.ResponseWriter
	r     *http.Request
	begun bool
}

// coded is a request that is not JSON: it has a query, and perhaps a body.
type coded interface {
	encode() (url.Values, io.Reader)
	decode(*call) error
}

// Decode implements [operation.Host]. An empty body means {}.
func (c *call) Decode(into any) error {
	var err error
	if request, ok := into.(coded); ok {
		err = request.decode(c)
	} else if c.r.Method == http.MethodPost {
		err = text.DecodeJSON(c.r.Body, into)
	}
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return nil
	case errors.As(err, new(*http.MaxBytesError)):
		return err
	}
	return fmt.Errorf("%w: %w", ErrRequest, err)
}

// handler returns the handler of all operations. It also reports unknown paths and
// wrong methods in JSON, unlike the mux.
func (s *Server) handler() http.Handler {
	if s.options.Gate == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { s.refuse(w, ErrStarting) })
	}
	mux := http.NewServeMux()
	var all []string
	for _, op := range s.operations() {
		all = append(all, op.About().Path)
		mux.HandleFunc(op.About().Path, func(w http.ResponseWriter, r *http.Request) { s.serve(op, w, r) })
	}
	probes := Probes(s.options.Gate.Ready)
	for _, path := range ProbePaths {
		all = append(all, path)
		mux.Handle(path, probes)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusNotFound, wireError{fmt.Sprintf("there is no %s; there is %s", r.URL.Path, strings.Join(all, ", ")), "no_path"})
	})
	return mux
}

// serve responds to a request.
func (s *Server) serve(op operation.Of[*call], w http.ResponseWriter, r *http.Request) {
	row := op.About()
	if r.Method != row.Method {
		w.Header().Set("Allow", row.Method)
		answer(w, http.StatusMethodNotAllowed, wireError{fmt.Sprintf("%s %s: use %s", r.Method, r.URL.Path, row.Method), "bad_method"})
		return
	}
	if row.Limit > 0 {
		r.Body = http.MaxBytesReader(w, r.Body, row.Limit)
	}
	c := &call{Server: s, ctx: r.Context(), list: r.PathValue("name"), peer: peerFrom(r), w: w, r: r}
	reply, err := op.Serve(c)
	switch {
	case err != nil:
		s.refuse(w, err)
	case !c.begun:
		answer(w, http.StatusOK, reply)
	}
}

func (c *call) status(None) (Status, error) { return c.options.Gate.Status(), nil }

func (c *call) health(None) (Health, error) { return c.options.Gate.Health(c.ctx), nil }

func (c *call) generation(None) (Generation, error) {
	return Generation{c.options.Gate.Generation()}, nil
}

func (c *call) rescan(None) (Rescanned, error) {
	c.log.Info("rescan asked for", "by", c.peer)
	return c.options.Gate.Rescan(c.ctx)
}

func (c *call) accept(request AcceptRequest) (Accepted, error) {
	c.log.Info("accept asked for", "list", c.list, "by", c.peer, "why", request.Why, "sha256", request.SHA256)
	return c.options.Gate.Accept(c.ctx, c.by(request.Caller), c.list, request)
}

func (c *call) pin(request PinRequest) (PinResult, error) {
	c.log.Info("pin asked for", "list", c.list, "by", c.peer, "why", request.Why, "sha256", request.SHA256)
	return c.options.Gate.Pin(c.ctx, c.by(request.Caller), c.list, request)
}

func (c *call) unpin(request UnpinRequest) (PinResult, error) {
	c.log.Info("unpin asked for", "list", c.list, "by", c.peer, "why", request.Why)
	return c.options.Gate.Unpin(c.ctx, c.by(request.Caller), c.list, request)
}

func (c *call) handover(request HandoverRequest) (HandedOver, error) {
	if !(request.TimeoutSeconds >= 0 && request.TimeoutSeconds <= MaxHandover.Seconds()) {
		return HandedOver{}, fmt.Errorf("%w: timeout_seconds must be from 0 to %v", ErrRequest, MaxHandover.Seconds())
	}
	c.log.Info("handover asked for", "by", c.peer)
	return c.options.Gate.Handover(c.ctx, time.Duration(request.TimeoutSeconds*float64(time.Second)))
}

func (c *call) audit(record AuditRecord) (None, error) {
	if record.Command == "" || record.List == "" || record.What == "" {
		return None{}, fmt.Errorf("%w: command, list and what must not be empty", ErrRequest)
	}
	return None{}, c.options.Gate.Audit(c.by(Caller{record.SudoUser}), record)
}

// changeAccounts makes a change for root or the gate's own user, who could change the file, too.
// The others who may control the gate may not make themselves accounts.
func (c *call) changeAccounts(change accounts.Change) (accounts.Changed, error) {
	if !c.peer.Known || c.peer.UID != 0 && c.peer.UID != os.Geteuid() {
		return accounts.Changed{}, ErrOwner
	}
	c.log.Info("change of accounts asked for", "what", change.Do, "user", change.Name, "by", c.peer)
	return c.options.Accounts.Change(change)
}

func (c *call) metrics(None) (None, error) {
	c.begun = true
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(writeTimeout))
	c.options.Metrics.ServeHTTP(c.w, c.r)
	return None{}, nil
}
