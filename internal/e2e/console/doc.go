// Package console proves the console and its API with the real program: who is let in, also
// through nginx and HAProxy; that the API does what docs/openapi.json says; and that edits of
// several people and the history survive handovers and kills.
//
// The pages in a real browser are in the module tools/browser.
package console
