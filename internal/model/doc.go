// Package model has only tests. They hold a plain model of the whole decision
// about a message (lists, exceptions, proofs, wrapped senders, recipients with a say) and
// compare it with the gate: random lists, policies and messages go through a real session, and
// each reply and each delivery must be the model's.
package model
