// Package restarts proves that a gate is stopped, reloaded and replaced without losing a
// client: signals, socket activation and notices of systemd, the shipped units, and the
// handover to a new process while mail passes.
package restarts
