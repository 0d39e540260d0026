package harness

import (
	"os"
	"testing"
)

// Scale returns the size of a test's load: n, or a tenth of it with -short.
func Scale(n int) int {
	if testing.Short() {
		return max(1, n/10)
	}
	return n
}

// IfShort returns n, or instead with -short.
func IfShort(n, instead int) int {
	if testing.Short() {
		return instead
	}
	return n
}

// FullEnv is the environment variable that gives the ledger and a few other tests their
// full size.
const FullEnv = "SPAMGATE_E2E_FULL"

// IfFull returns usual, or full if FullEnv is set.
func IfFull(usual, full int) int {
	if os.Getenv(FullEnv) != "" {
		return full
	}
	return usual
}
