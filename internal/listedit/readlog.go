package listedit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// Read calls record for each record of one of the Files, and broken for lines that are not
// records, which count from 1.
func (l *Log) Read(ctx context.Context, name string, record func(Record), broken func(line int, what error)) error {
	file, err := atomicfile.In(l.Dir).Open(name)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	defer file.Close()
	content, err := rotated.Unpack(name, stoppable{ctx, file})
	if err != nil {
		return fmt.Errorf("audit log: %s: %w", name, err)
	}
	defer content.Close()
	lines := bufio.NewScanner(content)
	lines.Buffer(nil, maxRecord)
	for n := 1; lines.Scan(); n++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var r Record
		err := json.Unmarshal(text, &r)
		if torn := bytes.LastIndex(text, []byte(`{"time":`)); err != nil && torn > 0 {
			broken(n, fmt.Errorf("its first %d bytes: %w", torn, err))
			err = json.Unmarshal(text[torn:], &r) // a loss of power cut the line before
		}
		switch {
		case err != nil:
			broken(n, err)
		case r.Time.IsZero() || r.Command == "":
			broken(n, errors.New("it has no time or no command"))
		default:
			r.Time = r.Time.UTC()
			record(r)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("audit log: %s: %w", name, err)
	}
	return nil
}
