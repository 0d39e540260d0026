//go:build race

package harness

// RaceEnabled reports whether the tests, and with them the gates, run with the race
// detector.
const RaceEnabled = true
