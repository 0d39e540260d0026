// Package fleetsearch searches the histories of all gates of a fleet: the question that one of them
// asks, the answers of the others, and the page that it makes of these.
//
// Questions and answers come from whoever has the credentials of the fleet, and are treated as
// hostile: they are bounded and checked, and the gate that asks compares each decision of an
// answer with its question again.
package fleetsearch
