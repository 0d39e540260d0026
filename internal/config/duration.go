package config

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"spamgate/internal/text"
	"spamgate/internal/words"
)

// duration binds a duration, and checks it against the range in its field's tag.
func (d *document) duration(path string, value any, field *time.Duration, tag reflect.StructTag) {
	const want = `a duration in quotes, such as "30s", "5m" or "7d"`
	var s string
	if !assign(d, path, value, &s, want) {
		return
	}
	v, ok := words.ParseDuration(s)
	if !ok {
		hint := "write " + want
		if better := asDuration(s); better != "" {
			hint = fmt.Sprintf("write %q: the units are ms, s, m, h, d and w", better)
		}
		d.fail(path, fmt.Sprintf("%q is not a duration", s), hint)
		return
	}
	*field = v
	low, high, _ := strings.Cut(tag.Get("range"), ",")
	least, _ := words.ParseDuration(low)
	most, _ := words.ParseDuration(high)
	if v < least || v > most {
		d.fail(path, text.Duration(v)+" is out of range", fmt.Sprintf("write %q to %q", low, high))
	}
}

var durationInWords = regexp.MustCompile(`^\s*(\d{1,6})\s*([a-z]*)\.?\s*$`)

// asDuration writes a duration in Go's units. It returns "" if s is not a duration.
func asDuration(s string) string {
	m := durationInWords.FindStringSubmatch(strings.ToLower(s))
	if m == nil {
		return ""
	}
	n, _ := strconv.Atoi(m[1]) // six digits at most
	switch unit := m[2]; {
	case unit == "" || strings.HasPrefix("seconds", unit):
		return m[1] + "s"
	case strings.HasPrefix("minutes", unit):
		return m[1] + "m"
	case strings.HasPrefix("hours", unit), unit == "hrs", unit == "hr":
		return m[1] + "h"
	case strings.HasPrefix("days", unit):
		return strconv.Itoa(n) + "d"
	case strings.HasPrefix("weeks", unit):
		return strconv.Itoa(n) + "w"
	}
	return ""
}
