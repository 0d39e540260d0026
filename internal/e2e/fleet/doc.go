// Package fleet tests gates that share lists, with a real NATS server.
package fleet
