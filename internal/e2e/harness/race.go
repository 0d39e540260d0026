package harness

import "os"

// RaceEnv is the environment variable that gives the gates the race detector although the
// tests do without. It finds races in the gate, in less time than go test -race.
const RaceEnv = "SPAMGATE_E2E_RACE"

// RaceEnabled reports whether the gates run with the race detector.
func RaceEnabled() bool { return raceTests || os.Getenv(RaceEnv) != "" }
