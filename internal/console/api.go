package console

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"spamgate/internal/accounts"
	"spamgate/internal/text"
)

// operation is a route of the API, with what docs/openapi.json says about it.
type operation struct {
	method, path string // below apiRoot
	may          accounts.Action

	id, summary string
	query       []parameter
	body        any // a value of the type of the request; nil: there is none
	answers     []answer

	// serve returns the answer, whose status is the first of answers unless it sets
	// another.
	serve func(*exchange) (any, error)
}

// parameter is a field of a query.
type parameter struct {
	name, what string
	values     []string // all that are valid; nil: any
	required   bool
	repeated   bool
}

var sinceParameter = parameter{name: "since", what: `Only from this time on: RFC 3339, a day of the gate's time zone, or a duration before now such as "2d"`}

// answer is an answer that is not an error.
type answer struct {
	status int
	what   string
	body   any // a value of its type
}

const apiRoot = "/api/v1"

// operations returns the routes of the API.
func operations() []operation {
	return slices.Concat(mailOperations, listOperations, changeOperations)
}

// apiRoutes returns the routes of the API as the router has them.
func apiRoutes() []route {
	routes := []route{{"GET", "/api/openapi.json", entered, (*exchange).openAPI}}
	for _, op := range operations() {
		routes = append(routes, route{op.method, apiRoot + op.path, op.may, op.handle})
	}
	return routes
}

// handle answers a request. A field that the operation does not have is an error, so that a
// misspelled one does not widen a search.
func (op operation) handle(x *exchange) error {
	fields := x.r.URL.Query()
	for name, values := range fields {
		i := slices.IndexFunc(op.query, func(p parameter) bool { return p.name == name })
		if i < 0 {
			return invalid(fmt.Sprintf("There is no field %q here. %s", name, op.fieldNames()))
		}
		if err := op.query[i].check(values); err != nil {
			return err
		}
	}
	for _, p := range op.query {
		if p.required && strings.TrimSpace(fields.Get(p.name)) == "" {
			return invalid(fmt.Sprintf("The field %s is missing.", p.name))
		}
	}
	result, err := op.serve(x)
	if err != nil {
		return err
	}
	status := x.status
	if status == 0 {
		status = op.answers[0].status
	}
	x.json(status, result)
	return nil
}

// fieldNames says which fields an operation has.
func (op operation) fieldNames() string {
	if len(op.query) == 0 {
		return "There are none."
	}
	var names []string
	for _, p := range op.query {
		names = append(names, p.name)
	}
	return "Use " + strings.Join(names, ", ") + "."
}

// check returns why these are not values of the parameter, or nil.
func (p parameter) check(values []string) error {
	if len(values) > 1 && !p.repeated {
		return invalid(fmt.Sprintf("The field %s stands there %d times.", p.name, len(values)))
	}
	for _, v := range values {
		if p.values != nil && v != "" && !slices.Contains(p.values, v) {
			return invalid(fmt.Sprintf("%s=%q: use %s.", p.name, v, strings.Join(p.values, ", ")))
		}
	}
	return nil
}

// body reads the body of a request: one JSON object without unknown or repeated members.
func (x *exchange) body(into any) error {
	err := text.DecodeJSON(x.r.Body, into)
	var tooLarge *http.MaxBytesError
	if err == nil || errors.As(err, &tooLarge) {
		return err
	}
	return invalid(fmt.Sprintf("The body is not the JSON object that is wanted: %v.", err))
}

// limit returns the field limit of the query, or else usual.
func (x *exchange) limit(usual, most int) (int, error) {
	s := x.query("limit")
	if s == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, invalid(fmt.Sprintf("limit is not a number from 1 to %d.", most))
	}
	return n, nil
}
