// Package admin queries and controls a running gate: HTTP with JSON on a unix socket.
// The gate calls [Listen], commands call [Dial] and then [Call] with one of the operations,
// whose table is in operations.go; a [Client] is a [History], too. GET /healthz and /readyz
// are [Probes].
//
// Everyone who may open the socket may do all of this: its mode and group are the only
// access control. Changes are logged with the caller's user and process, as reported
// by the kernel. An error is a status of 400 or above with an object
// {"error": TEXT, "code": CODE}.
package admin
