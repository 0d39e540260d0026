// Package accounts keeps who may use the console and its API: users with passwords,
// tokens, their roles, and the sessions of users who have logged in.
//
// A [Store] is a directory that several processes use at once: two gates during a
// handover, and commands. Every change is on disk before a method returns, and counts at
// once in all of them. The directory holds hashes, never a password, a token or a cookie.
//
// The package knows nothing of HTTP.
package accounts
