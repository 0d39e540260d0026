// Package admin queries and controls a running gate: HTTP with JSON on a unix socket.
// The gate calls [Listen], commands call [Dial].
//
//	GET  /v1/status                     a [Status]
//	GET  /v1/health                     a [Health]
//	GET  /v1/generation                 a [Generation]
//	POST /v1/rescan                     check all list files now; a [Rescanned]
//	POST /v1/lists/{name}/accept        [AcceptRequest] → an [Accepted]
//	POST /v1/lists/{name}/pin           [PinRequest] → a [PinResult]
//	POST /v1/lists/{name}/unpin         [UnpinRequest] → a [PinResult]
//	GET  /v1/lists/{name}/unused?since= [UnusedHeader], [UnusedEntry]…, [UnusedEnd]: one JSON object per line
//	POST /v1/lists/{name}/entries       [AddRequest] → a managed.Result
//	POST /v1/lists/{name}/entries/remove [RemoveRequest] → a managed.Result
//	GET  /v1/lists/{name}/content       the text of a managed list
//	POST /v1/lists/{name}/replace?command=&what=&why=&base=&dry_run= its new text → a managed.Result
//	GET  /v1/lists/{name}/versions      of a managed list; managed.Version…
//	POST /v1/lists/{name}/rollback      [RollbackRequest] → a managed.Result
//	POST /v1/undo                       [UndoRequest] → a managed.Result
//	GET  /v1/changes?list=&entry=&by=&since=&limit=&before= a managed.ChangesPage
//	GET  /v1/decisions?sender=&id=&…    [DecisionsHeader], decisions.Decision…, [DecisionsEnd]: one JSON object per line
//	GET  /v1/decisions/top?kind=&…      [TopDecisions]
//	GET  /v1/decisions/totals?since=&until= [DecisionTotals]
//	POST /v1/handover                   [HandoverRequest] → a [HandedOver], once a new process serves
//	GET  /v1/fleet                      a [Fleet]
//	POST /v1/fleet/join                 [FleetJoinRequest] → a [FleetJoined]
//	POST /v1/fleet/leave                a [Fleet]
//	GET  /v1/fleet/diff                 a [FleetDiff]
//	GET  /v1/fleet/decisions?sender=&gate=&… a fleetsearch.Page
//	POST /v1/audit                      an [AuditRecord] for the audit log
//	GET  /metrics                       metrics for Prometheus
//	GET  /healthz, /readyz              see [Probes]
//
// Everyone who may open the socket may do all of this: its mode and group are the only
// access control. Changes are logged with the caller's user and process, as reported
// by the kernel. An error is a status of 400 or above with an object
// {"error": TEXT, "code": CODE}.
package admin
