// Package delivery proves that mail is neither lost, duplicated nor changed. It keeps a
// ledger: a message that the client got 250 for is at the next hop exactly once and byte
// for byte, and one that was refused is not there. So it must be with every mail program,
// every size, every byte value and every way to end a message, and when a client, a next
// hop or the network between them fails at any byte.
package delivery
