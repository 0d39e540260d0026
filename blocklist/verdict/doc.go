// Package verdict holds the words in which the lists answer: what happens to
// a message ([Action]), where a sender stands ([Stage]), which entry matched
// ([Match]) and what the lists say of one sender ([Verdict]).
//
// A [Judge] is what every protocol asks. The protocol only translates: it
// fills in a [Message] with the facts that it has, asks one [Query] for each
// sender, and makes a reply of the strictest [Finding].
package verdict
