// Package monitoring proves what an operator sees of a gate, and that looking is harmless:
// a log that nobody reads, whose disk is full or whose file is rotated never delays mail,
// and the metrics and the admin socket are those that the docs describe.
package monitoring
