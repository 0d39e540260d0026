// Package console is the gate's web console: pages for people and a JSON API for programs,
// on a socket of its own.
//
// Nobody is trusted because of an address, loopback included: every page needs a session and
// every API request a token. [Console.Routes] lists all routes with what an account must be
// allowed to do. GET never changes anything. Text from mail, lists and log is hostile:
// html/template escapes it, and the Content-Security-Policy allows no inline script.
package console
