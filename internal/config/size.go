package config

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"
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

var sizeText = regexp.MustCompile(`^([0-9]{1,18}) ?([A-Za-z]+)$`)

// parseSize parses a whole number with its unit, in upper or lower case.
func parseSize(s string) (Size, bool) {
	m := sizeText.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // 18 digits at most
	for _, u := range sizeUnits {
		if strings.EqualFold(m[2], u.name) {
			return Size(n * u.bytes), n <= math.MaxInt64/u.bytes
		}
	}
	return 0, false
}

// bytes binds a size, and checks it against the range in its field's tag.
func (d *document) bytes(path string, value any, field *Size, tag reflect.StructTag) {
	const want = `a size in quotes, such as "500MiB" or "1GiB"`
	var s string
	if !assign(d, path, value, &s, want) {
		return
	}
	v, ok := parseSize(s)
	if !ok {
		d.fail(path, fmt.Sprintf("%q is not a size", s), "write "+want)
		return
	}
	*field = v
	low, high, _ := strings.Cut(tag.Get("range"), ",")
	least, _ := parseSize(low)
	most, _ := parseSize(high)
	if v < least || v > most {
		d.fail(path, v.String()+" is out of range", fmt.Sprintf("write %q to %q", low, high))
	}
}
