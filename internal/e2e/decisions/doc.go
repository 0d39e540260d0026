// Package decisions tests the history of decisions with the real program: what is refused is
// found by the running gate and without one, whatever the log's level, through a handover, in a
// directory of another user, and with a disk that is full.
package decisions
