// Package recipients proves what becomes of a message whose recipients want different things:
// every combination of two of them with a real mail server as next hop, and senders that must
// be proven, with real signatures and a DNS of the test's own.
package recipients
