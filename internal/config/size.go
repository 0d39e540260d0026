package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

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

// bytes binds a size, and checks it against the range in its field's tag.
func (d *document) bytes(path string, value any, field *Size, tag reflect.StructTag) {
	const want = `a size in quotes, such as "500MiB" or "1GiB"`
	var s string
	if !assign(d, path, value, &s, want) {
		return
	}
	v, ok := words.ParseSize(s)
	if !ok {
		d.fail(path, fmt.Sprintf("%q is not a size", s), "write "+want)
		return
	}
	*field = Size(v)
	low, high, _ := strings.Cut(tag.Get("range"), ",")
	least, _ := words.ParseSize(low)
	most, _ := words.ParseSize(high)
	if v < least || v > most {
		d.fail(path, field.String()+" is out of range", fmt.Sprintf("write %q to %q", low, high))
	}
}
