// Package mailwhy finds messages in the gate's log by their id or an address, and says in words
// what happened to them.
package mailwhy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Record is a line of the gate's log.
type Record struct {
	Time  time.Time
	Level string
	Msg   string

	attrs []attr

	kept bool   // it is of the history
	gate string // of the fleet, if that was asked

	// Of a record in the history that stands for several: their number, and the time of the
	// last one.
	count int
	last  time.Time
}

type attr struct{ key, value string }

// Get returns the value of an attribute, or "".
func (r *Record) Get(key string) string {
	for _, a := range r.attrs {
		if a.key == key {
			return a.value
		}
	}
	return ""
}

// Kept reports whether the record is of the history of decisions, and not of a log.
func (r *Record) Kept() bool { return r.kept }

// Attrs returns the attributes.
func (r *Record) Attrs() map[string]string {
	all := make(map[string]string, len(r.attrs))
	for _, a := range r.attrs {
		all[a.key] = a.value
	}
	return all
}

// same reports whether two records are of the same line.
func (r *Record) same(other *Record) bool {
	return r.Time.Equal(other.Time) && r.Msg == other.Msg && slices.Equal(r.attrs, other.attrs)
}

// set sets an attribute that a handler wrote.
func (r *Record) set(key, value string) (err error) {
	switch {
	case key == "time":
		r.Time, err = time.Parse(time.RFC3339Nano, value)
	case key == "level":
		r.Level = value
	case key == "msg" && r.Msg == "":
		r.Msg = value
	default:
		r.attrs = append(r.attrs, attr{key, value})
	}
	return err
}

// syslogPrefix matches what syslog daemons and journalctl write before a line of the gate: time,
// host and the program's name. Lines of other programs may quote the gate's, which have another
// name before them.
var syslogPrefix = regexp.MustCompile(`^(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S{8,30}) (?:[\w.:-]+ )?spamgate(?:\[\d+\])?: `)

// ParseLine parses a line of the log in text or JSON, as in a file or after the prefix of syslog.
// It reports false for any other line.
func ParseLine(line []byte) (*Record, bool) {
	line = bytes.Trim(line, "\x00\r\n ") // a crash may leave zeros in a file
	if len(line) > longestLine {
		return nil, false
	}
	if prefix := syslogPrefix.Find(line); prefix != nil {
		line = line[len(prefix):]
	}
	var r *Record
	switch {
	case bytes.HasPrefix(line, []byte("{")):
		r = parseJSON(line)
	default:
		r = parseText(string(line))
	}
	return r, r != nil && !r.Time.IsZero() && r.Level != "" && r.Msg != ""
}

// parseText parses the format of slog.TextHandler. If a crash cut the line off, so that another
// one follows in it, that one counts. A value with a space or "=" is in quotes, so no stranger
// can make a line look so.
func parseText(line string) *Record {
	const begin = "time="
	if !strings.HasPrefix(line, begin) {
		return nil
	}
	r := &Record{}
	for line != "" {
		key, rest, ok := strings.Cut(line, "=")
		if !ok || key == "" || strings.ContainsAny(key, " \"") {
			return nil
		}
		if strings.HasSuffix(key, "time") { // no other key ends so
			r, key = &Record{}, "time"
		}
		var value string
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return nil
			}
			if value, err = strconv.Unquote(quoted); err != nil {
				return nil
			}
			rest = rest[len(quoted):]
			if rest != "" && rest[0] != ' ' {
				return nil
			}
			rest = strings.TrimPrefix(rest, " ")
		} else {
			value, rest, _ = strings.Cut(rest, " ")
			if i := strings.LastIndex(value, begin); i >= 0 {
				line = value[i:] + " " + rest
				continue
			}
			if strings.ContainsAny(value, `="`) {
				return nil
			}
		}
		if r.set(key, value) != nil {
			return nil
		}
		line = rest
	}
	return r
}

// parseJSON parses the format of slog.JSONHandler. In its strings quotes are escaped, so that
// what looks like the begin of a line is one.
func parseJSON(line []byte) *Record {
	if last := bytes.LastIndex(line, []byte(`{"time":"`)); last > 0 {
		line = line[last:]
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		return nil
	}
	r := &Record{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return nil
		}
		text, ok := value.(string)
		if !ok {
			text = fmt.Sprint(value)
		}
		if r.set(fmt.Sprint(key), text) != nil {
			return nil
		}
	}
	if _, err := d.Token(); err != nil || d.InputOffset() != int64(len(line)) {
		return nil
	}
	return r
}
