package console

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"spamgate/docs"
	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/managed"
	"spamgate/internal/operation"
	"spamgate/internal/text"
)

// row is an operation of the API, and a table of them what docs/openapi.json is made from.
type row = operation.Of[*exchange]

// parameter is a field of a query.
type parameter = operation.Parameter

var sinceParameter = parameter{Name: "since", What: `Only from this time on: RFC 3339, a day of the gate's time zone, or a duration before now such as "2d"`}

// none is the request of an operation that takes no body.
type none = operation.None

// op returns an operation of the API, whose types of request and reply are those of the function.
func op[Request, Reply any](name, method, path string, may accounts.Action, summary string,
	answers []operation.Answer, do func(*exchange, Request) (Reply, error), query ...parameter) row {
	return operation.New(operation.Row{
		Name: name, Method: method, Path: path, May: may, Summary: summary, Query: query, Answers: answers,
	}, do)
}

// ok is the only answer of an operation that is no error.
func ok(what string) []operation.Answer {
	return []operation.Answer{{Status: http.StatusOK, What: what}}
}

const apiRoot = "/api/v1"

// operations returns the routes of the API.
func operations() []row {
	return slices.Concat(mailOperations, listOperations, changeOperations)
}

// apiRoutes returns the routes of the API as the router has them.
func apiRoutes() []route {
	routes := []route{{"GET", "/api/openapi.json", entered, (*exchange).openAPI}}
	for _, op := range operations() {
		about := op.About()
		routes = append(routes, route{about.Method, apiRoot + about.Path, about.May, func(x *exchange) error { return x.answerAPI(op) }})
	}
	return routes
}

// answerAPI answers a request. A field that the operation does not have is an error, so that a
// misspelled one does not widen a search.
func (x *exchange) answerAPI(op row) error {
	about, fields := op.About(), x.r.URL.Query()
	for name, values := range fields {
		i := slices.IndexFunc(about.Query, func(p parameter) bool { return p.Name == name })
		if i < 0 {
			return invalid(fmt.Sprintf("There is no field %q here. %s", name, fieldNames(about.Query)))
		}
		if err := checkField(about.Query[i], values); err != nil {
			return err
		}
	}
	for _, p := range about.Query {
		if p.Required && strings.TrimSpace(fields.Get(p.Name)) == "" {
			return invalid(fmt.Sprintf("The field %s is missing.", p.Name))
		}
	}
	result, err := op.Serve(x)
	if err != nil {
		return err
	}
	operation.WriteJSON(x.w, cmp.Or(x.status, about.Answers[0].Status), result)
	return nil
}

// fieldNames says which fields an operation has.
func fieldNames(all []parameter) string {
	if len(all) == 0 {
		return "There are none."
	}
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return "Use " + strings.Join(names, ", ") + "."
}

// checkField returns why these are not values of the parameter, or nil.
func checkField(p parameter, values []string) error {
	if len(values) > 1 && !p.Repeated {
		return invalid(fmt.Sprintf("The field %s stands there %d times.", p.Name, len(values)))
	}
	for _, v := range values {
		if p.Values != nil && v != "" && !slices.Contains(p.Values, v) {
			return invalid(fmt.Sprintf("%s=%q: use %s.", p.Name, v, strings.Join(p.Values, ", ")))
		}
	}
	return nil
}

// Decode implements [operation.Host]: it reads the body of a request, one JSON object without unknown
// or repeated members. That there is no such list is said first.
func (x *exchange) Decode(into any) error {
	if x.r.Method != http.MethodPost {
		return nil
	}
	if x.r.PathValue("name") != "" {
		if _, err := x.list(); err != nil {
			return err
		}
	}
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

// changeOperations are about what people have done, and the gate itself.
var changeOperations = []row{
	op("changes", "GET", "/changes", accounts.SeeChanges, "Who changed which entry, the newest first",
		ok("A page of changes"), (*exchange).apiChanges,
		parameter{Name: "list", What: "The list"},
		parameter{Name: "entry", What: "The entry, as the list has it"},
		parameter{Name: "by", What: "Who made them"},
		sinceParameter,
		parameter{Name: "limit", What: "How many: 1 to 1000, usually 100"},
		parameter{Name: "before", What: "next of the page before"}),
	op("undo", "POST", "/changes/{id}/undo", accounts.UndoOwn, "Undo a change",
		ok("It was undone"), (*exchange).apiUndo),
	op("health", "GET", "/health", accounts.SeeHealth, "Whether the gate works, its next hops and its lists",
		ok("What spamgate health --json prints: healthy is false if something is wrong"), (*exchange).apiHealth),
	op("fleet", "GET", "/fleet", accounts.SeeHealth, "The fleet as this gate sees it: members, shared lists, problems",
		ok("What spamgate fleet status --json prints: state is off if there is no fleet"), (*exchange).apiFleet),
}

// apiChanges returns changes. An account that is bound to domains sees those for its own
// recipients.
func (x *exchange) apiChanges(none) (page managed.ChangesPage, err error) {
	q := managed.ChangesQuery{List: x.query("list"), Entry: x.query("entry"), By: x.query("by"), Before: x.query("before"), Want: seenBy(x.who)}
	if q.Limit, err = x.limit(100, mostChanges); err != nil {
		return page, err
	}
	if text := x.query("since"); text != "" {
		if q.Since, err = parsePast(text, x.console.Now()); err != nil {
			return page, err
		}
	}
	return x.console.Editor.Changes(x.r.Context(), q)
}

// mostChanges bounds a page of changes.
const mostChanges = 1000

// apiUndo undoes a change.
func (x *exchange) apiUndo(body apiWhy) (apiEdited, error) {
	return edited(x.undo(x.r.PathValue("id"), body.Why))
}

// apiHealth returns the health of the gate, as of the last seconds: to ask it tries next hops.
func (x *exchange) apiHealth(none) (admin.Health, error) {
	return x.console.health.wait(x.r.Context(), x.console.Now())
}

// apiFleet returns the state of the fleet, as of the last seconds.
func (x *exchange) apiFleet(none) (admin.Fleet, error) {
	if !x.console.inFleet() {
		return admin.Fleet{State: admin.FleetOff}, nil
	}
	return x.console.fleet.wait(x.r.Context(), x.console.Now())
}

// openAPI answers with the description of the API.
func (x *exchange) openAPI() error {
	x.w.Header().Set("Content-Type", "application/json")
	_, _ = x.w.Write(docs.OpenAPI) // the client may be gone
	return nil
}
