package admin

import "spamgate/internal/operation"

// None is the request or the reply of an operation that has none.
type None = operation.None

// op returns an operation of the admin socket. The request of a POST is JSON, unless it is a coded one.
func op[Request, Reply any](method, path string, do func(*call, Request) (Reply, error)) *operation.Operation[*call, Request, Reply] {
	return operation.New(operation.Row{Method: method, Path: path, Limit: maxBody}, do)
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
	OpStatus     = op("GET", "/v1/status", (*call).status)
	OpHealth     = op("GET", "/v1/health", (*call).health)
	OpGeneration = op("GET", "/v1/generation", (*call).generation)
	OpRescan     = op("POST", "/v1/rescan", (*call).rescan) // checks all list files, and waits until changes are live

	// About any list. The reply of opUnused has a line for each entry.
	OpAccept = op("POST", "/v1/lists/{name}/accept", (*call).accept)
	OpPin    = op("POST", "/v1/lists/{name}/pin", (*call).pin)
	OpUnpin  = op("POST", "/v1/lists/{name}/unpin", (*call).unpin)
	opUnused = op("GET", "/v1/lists/{name}/unused", (*call).unused)

	// About managed lists. The reply of opContent is the text, and OpReplace takes one as its body.
	OpAdd      = large(op("POST", "/v1/lists/{name}/entries", (*call).add), maxEntries)
	OpRemove   = large(op("POST", "/v1/lists/{name}/entries/remove", (*call).remove), maxEntries)
	opContent  = op("GET", "/v1/lists/{name}/content", (*call).content)
	OpReplace  = large(op("POST", "/v1/lists/{name}/replace", (*call).replace), 0)
	OpVersions = op("GET", "/v1/lists/{name}/versions", (*call).versions) // the newest first
	OpRollback = op("POST", "/v1/lists/{name}/rollback", (*call).rollback)
	OpUndo     = op("POST", "/v1/undo", (*call).undo)
	OpChanges  = op("GET", "/v1/changes", (*call).changes)

	// About the history. The reply of opDecisions has a line for each decision.
	opDecisions = op("GET", "/v1/decisions", (*call).find)
	opTop       = op("GET", "/v1/decisions/top", (*call).top)
	opTotals    = op("GET", "/v1/decisions/totals", (*call).totals)

	OpHandover = op("POST", "/v1/handover", (*call).handover) // replies once a new process serves
	OpAudit    = op("POST", "/v1/audit", (*call).audit)

	OpChangeAccounts = large(op("POST", "/v1/accounts", (*call).changeAccounts), maxAccounts)

	OpFleet          = op("GET", "/v1/fleet", (*call).fleet)
	OpFleetJoin      = op("POST", "/v1/fleet/join", (*call).fleetJoin)
	OpFleetLeave     = op("POST", "/v1/fleet/leave", (*call).fleetLeave)
	OpFleetDiff      = op("GET", "/v1/fleet/diff", (*call).fleetDiff)
	opFleetDecisions = op("GET", "/v1/fleet/decisions", (*call).fleetDecisions)

	opMetrics = op("GET", "/metrics", (*call).metrics)
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
