//go:build race

package harness

const raceTests = true
