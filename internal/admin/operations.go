package admin

import (
	"net/http"

	"spamgate/internal/operation"
)

// None is the request or the reply of an operation that has none.
type None = operation.None

// get returns an operation that changes nothing.
func get[Request, Reply any](path string, do func(*call, Request) (Reply, error)) *operation.Operation[*call, Request, Reply] {
	return operation.New(operation.Row{Method: http.MethodGet, Path: path}, do)
}

// post returns an operation that may change something, whose request is JSON.
func post[Request, Reply any](path string, do func(*call, Request) (Reply, error)) *operation.Operation[*call, Request, Reply] {
	return operation.New(operation.Row{Method: http.MethodPost, Path: path, Limit: maxBody}, do)
}

// large sets how many bytes a request may have; 0: any number.
func large[Request, Reply any](o *operation.Operation[*call, Request, Reply], bytes int64) *operation.Operation[*call, Request, Reply] {
	o.Limit = bytes
	return o
}

// The operations of the admin socket: a path, and the function that does it, which has the types of
// request and reply. The client of all of them is [Call]; those in lower case have a method of [Client]
// that reads lines or text, or that makes it a [History].
var (
	OpStatus     = get("/v1/status", (*call).status)
	OpHealth     = get("/v1/health", (*call).health)
	OpGeneration = get("/v1/generation", (*call).generation)
	OpRescan     = post("/v1/rescan", (*call).rescan) // checks all list files, and waits until changes are live

	// About any list. The reply of opUnused has a line for each entry.
	OpAccept = post("/v1/lists/{name}/accept", (*call).accept)
	OpPin    = post("/v1/lists/{name}/pin", (*call).pin)
	OpUnpin  = post("/v1/lists/{name}/unpin", (*call).unpin)
	opUnused = get("/v1/lists/{name}/unused", (*call).unused)

	// About managed lists. The reply of opContent is the text, and OpReplace takes one as its body.
	OpAdd      = large(post("/v1/lists/{name}/entries", (*call).add), maxEntries)
	OpRemove   = large(post("/v1/lists/{name}/entries/remove", (*call).remove), maxEntries)
	opContent  = get("/v1/lists/{name}/content", (*call).content)
	OpReplace  = large(post("/v1/lists/{name}/replace", (*call).replace), 0)
	OpVersions = get("/v1/lists/{name}/versions", (*call).versions) // the newest first
	OpRollback = post("/v1/lists/{name}/rollback", (*call).rollback)
	OpUndo     = post("/v1/undo", (*call).undo)
	OpChanges  = get("/v1/changes", (*call).changes)

	// About the history. The reply of opDecisions has a line for each decision.
	opDecisions = get("/v1/decisions", (*call).find)
	opTop       = get("/v1/decisions/top", (*call).top)
	opTotals    = get("/v1/decisions/totals", (*call).totals)

	OpHandover = post("/v1/handover", (*call).handover) // replies once a new process serves
	OpAudit    = post("/v1/audit", (*call).audit)

	OpChangeAccounts = large(post("/v1/accounts", (*call).changeAccounts), maxAccounts)

	OpFleet          = get("/v1/fleet", (*call).fleet)
	OpFleetJoin      = post("/v1/fleet/join", (*call).fleetJoin)
	OpFleetLeave     = post("/v1/fleet/leave", (*call).fleetLeave)
	OpFleetDiff      = get("/v1/fleet/diff", (*call).fleetDiff)
	opFleetDecisions = get("/v1/fleet/decisions", (*call).fleetDecisions)

	opMetrics = get("/metrics", (*call).metrics)
)

// operations returns the operations that this gate has, in the order in which an error names them.
func (s *Server) operations() []operation.Of[*call] {
	all := []operation.Of[*call]{
		OpStatus, OpHealth, OpGeneration, OpRescan, OpAccept, OpPin, OpUnpin, opUnused,
		OpAdd, OpRemove, opContent, OpReplace, OpVersions, OpRollback, OpUndo, OpChanges,
		opDecisions, opTop, opTotals, OpHandover, OpAudit,
	}
	if s.options.Accounts != nil {
		all = append(all, OpChangeAccounts)
	}
	if s.options.Fleet != nil {
		all = append(all, OpFleet, OpFleetJoin, OpFleetLeave, OpFleetDiff, opFleetDecisions)
	}
	if s.options.Metrics != nil {
		all = append(all, opMetrics)
	}
	return all
}
