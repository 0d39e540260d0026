package console

import (
	"net/http"

	"spamgate/docs"
	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/managed"
)

// changeOperations are about what people have done, and the gate itself.
var changeOperations = []operation{
	{
		method: "GET", path: "/changes", may: accounts.SeeChanges, id: "changes", summary: "Who changed which entry, the newest first",
		query: []parameter{
			{name: "list", what: "The list"},
			{name: "entry", what: "The entry, as the list has it"},
			{name: "by", what: "Who made them"},
			sinceParameter,
			{name: "limit", what: "How many: 1 to 1000, usually 100"},
			{name: "before", what: "next of the page before"},
		},
		answers: []answer{{http.StatusOK, "A page of changes", managed.ChangesPage{}}},
		serve:   (*exchange).apiChanges,
	},
	{
		method: "POST", path: "/changes/{id}/undo", may: accounts.UndoOwn, id: "undo", summary: "Undo a change",
		body:    apiWhy{},
		answers: []answer{{http.StatusOK, "It was undone", apiEdited{}}},
		serve:   (*exchange).apiUndo,
	},
	{
		method: "GET", path: "/health", may: accounts.SeeHealth, id: "health", summary: "Whether the gate works, its next hops and its lists",
		answers: []answer{{http.StatusOK, "What spamgate health --json prints: healthy is false if something is wrong", admin.Health{}}},
		serve:   (*exchange).apiHealth,
	},
	{
		method: "GET", path: "/fleet", may: accounts.SeeHealth, id: "fleet", summary: "The fleet as this gate sees it: members, shared lists, problems",
		answers: []answer{{http.StatusOK, "What spamgate fleet status --json prints: state is off if there is no fleet", admin.Fleet{}}},
		serve:   (*exchange).apiFleet,
	},
}

// apiChanges returns changes. An account that is bound to domains sees those for its own
// recipients.
func (x *exchange) apiChanges() (any, error) {
	q := managed.ChangesQuery{List: x.query("list"), Entry: x.query("entry"), By: x.query("by"), Before: x.query("before"), Want: seenBy(x.who)}
	var err error
	if q.Limit, err = x.limit(100, mostChanges); err != nil {
		return nil, err
	}
	if text := x.query("since"); text != "" {
		if q.Since, err = parsePast(text, x.console.Now()); err != nil {
			return nil, err
		}
	}
	return x.console.Editor.Changes(x.r.Context(), q)
}

// mostChanges bounds a page of changes.
const mostChanges = 1000

// apiUndo undoes a change.
func (x *exchange) apiUndo() (any, error) {
	var body apiWhy
	if err := x.body(&body); err != nil {
		return nil, err
	}
	return edited(x.undo(x.r.PathValue("id"), body.Why))
}

// apiHealth returns the health of the gate, as of the last seconds: to ask it tries next hops.
func (x *exchange) apiHealth() (any, error) {
	return x.console.health.wait(x.r.Context(), x.console.Now())
}

// apiFleet returns the state of the fleet, as of the last seconds.
func (x *exchange) apiFleet() (any, error) {
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
