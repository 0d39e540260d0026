// Package addresses proves that the gate judges the sender that the next hop sees,
// however an address is written in the envelope or in the header, and that no form of a
// recipient makes a trusting next hop relay. Real servers are sent each form directly
// first, to learn what they make of it.
package addresses
