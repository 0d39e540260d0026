// Package admin is how a running gate is asked about itself and told to change:
// HTTP with JSON on a unix socket. [Listen] is the gate's side, [Dial] that of the
// commands.
//
//	GET  /v1/status                     a [Status]
//	GET  /v1/generation                 a [Generation]
//	POST /v1/rescan                     look at all list files now; a [Rescanned]
//	POST /v1/lists/{name}/accept        [AcceptRequest] → an [Accepted]
//	GET  /v1/lists/{name}/unused?since= [UnusedHeader], [UnusedEntry]…, [UnusedEnd], a JSON object a line
//	POST /v1/audit                      an [AuditRecord] for the audit log
//	GET  /metrics                       what Prometheus reads
//
// Whoever may open the socket may do all of this: its mode and group are the only
// lock. What changes something is logged with the caller's user and process, as
// the kernel knows them. An error is a status of 400 or above with an object
// {"error": TEXT, "code": CODE}.
package admin
