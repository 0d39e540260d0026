package console

import (
	"spamgate/docs"
	"spamgate/internal/accounts"
	"spamgate/internal/admin"
	"spamgate/internal/managed"
)

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
