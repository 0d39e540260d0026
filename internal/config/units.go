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

// Size is a number of bytes, which a file has with its unit.
type Size int64

// sizeUnits are the units of a size, the largest first.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
}

// String returns the size with the largest unit of which it is a multiple: "1GiB".
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return "0B"
}

// bytes binds a size.
func (d *document) bytes(path string, value any, field *Size, tag reflect.StructTag) {
	hint := func(string) string { return `write a size in quotes, such as "500MiB" or "1GiB"` }
	quantity(d, path, value, field, tag, "size", hint, words.ParseSize, Size.String)
}

// duration binds a duration.
func (d *document) duration(path string, value any, field *time.Duration, tag reflect.StructTag) {
	hint := func(s string) string {
		if better := asDuration(s); better != "" {
			return fmt.Sprintf("write %q: the units are ms, s, m, h, d and w", better)
		}
		return `write a duration in quotes, such as "30s", "5m" or "7d"`
	}
	quantity(d, path, value, field, tag, "duration", hint, words.ParseDuration, text.Duration)
}

// quantity binds a number that the file has with its unit, and checks it against the range in
// its field's tag. Hint says what to write instead of an invalid one.
func quantity[F, V ~int64](d *document, path string, value any, field *F, tag reflect.StructTag, kind string,
	hint func(string) string, parse func(string) (V, bool), show func(F) string) {
	var s string
	if !assign(d, path, value, &s, strings.TrimPrefix(hint(""), "write ")) {
		return
	}
	v, ok := parse(s)
	if !ok {
		d.fail(path, fmt.Sprintf("%q is not a %s", s, kind), hint(s))
		return
	}
	*field = F(v)
	low, high, _ := strings.Cut(tag.Get("range"), ",")
	least, _ := parse(low)
	most, _ := parse(high)
	if v < least || v > most {
		d.fail(path, show(*field)+" is out of range", fmt.Sprintf("write %q to %q", low, high))
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
