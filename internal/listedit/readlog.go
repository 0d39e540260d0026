package listedit

import (
	"fmt"
	"slices"

	"spamgate/internal/atomicfile"
	"spamgate/internal/rotated"
)

// Files returns the names in the log's directory of the log and of what was rotated away:
// audit.log.1, audit.log-20261121.gz and the like.
func (l *Log) Files() ([]string, error) {
	entries, err := atomicfile.In(l.Dir).ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	var names []string
	for _, e := range entries {
		if rotated.Of(LogName, e.Name()) && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Reverse(names) // the log itself, which is the newest, last
	return names, nil
}

// maxRecord bounds a line of the log.
const maxRecord = 16 << 20
