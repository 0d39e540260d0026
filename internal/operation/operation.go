// Package operation describes what programs can ask over HTTP with JSON: a row for each operation, from
// which server, client and documents are made. The admin socket and the API of the console are tables
// of such rows.
package operation

import (
	"encoding/json"
	"net/http"

	"spamgate/internal/accounts"
)

// Row is what is known of an operation without doing it.
type Row struct {
	Name         string // in docs/openapi.json
	Method, Path string
	May          accounts.Action // what an account must be allowed to do, if only for its own recipients
	Limit        int64           // of the request's body, in bytes; 0: none

	Summary string
	Query   []Parameter
	Answers []Answer // other than errors; the usual one comes first

	Request, Reply any // zero values of their types; a nil Reply can be anything
}

// Parameter is a field of a query.
type Parameter struct {
	Name, What string
	Values     []string // all that are valid; nil: any
	Required   bool
	Repeated   bool
}

// Answer is a status with what it means.
type Answer struct {
	Status int
	What   string
}

// Host is one request at a server.
type Host interface {
	// Decode sets into, a pointer, to what the request has.
	Decode(into any) error
}

// Operation is a row with the function that does it.
type Operation[H Host, Request, Reply any] struct {
	Row
	Do func(H, Request) (Reply, error)
}

// New returns the operation that a function does.
func New[H Host, Request, Reply any](row Row, do func(H, Request) (Reply, error)) *Operation[H, Request, Reply] {
	row.Request, row.Reply = *new(Request), *new(Reply)
	return &Operation[H, Request, Reply]{row, do}
}

// None is the request or the reply of an operation that has none.
type None = struct{}

// Of is an operation in the table of a server, whatever it takes and returns.
type Of[H Host] interface {
	About() *Row
	Serve(H) (any, error)
}

// About returns the row.
func (o *Operation[H, Request, Reply]) About() *Row { return &o.Row }

// Serve decodes a request, and returns the reply.
func (o *Operation[H, Request, Reply]) Serve(h H) (any, error) {
	var request Request
	if err := h.Decode(&request); err != nil {
		return nil, err
	}
	return o.Do(h, request)
}

// WriteJSON writes a whole response. The caller may be gone.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
