package harness

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// RaceEnv is the environment variable that gives the gates the race detector although the
// tests do without: the names of test packages such as "delivery restarts", or 1 for all. It
// finds races in the gate, in less time than go test -race.
const RaceEnv = "SPAMGATE_E2E_RACE"

// RaceEnabled reports whether the gates run with the race detector.
func RaceEnabled() bool {
	packages := strings.Fields(os.Getenv(RaceEnv))
	dir, err := os.Getwd() // the package's
	return raceTests || slices.Contains(packages, "1") || err == nil && slices.Contains(packages, filepath.Base(dir))
}
