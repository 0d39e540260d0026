// Package nexthops proves what the gate does about its next hops: it uses another one if
// one is down, silent or slow, respects their limits, finds out that mail would go in a
// loop, and delivers by LMTP to those recipients that have no copy yet.
package nexthops
