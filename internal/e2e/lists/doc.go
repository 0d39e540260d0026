// Package lists proves that a change of a list goes live whole and soon, whichever way it
// was written, fetched or edited, and that a list that looks wrong is held while its last
// good version serves, until somebody accepts it or rolls it back.
package lists
