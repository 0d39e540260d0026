package blocklist

import (
	"fmt"
	"slices"
	"strings"
)

// ListType says which way a list's matches count.
type ListType uint8

// The types of lists.
const (
	Block ListType = iota
	Allow
)

var listTypeNames = []string{"block", "allow"}

// String returns the type's name, as in configurations: "block".
func (t ListType) String() string {
	if int(t) < len(listTypeNames) {
		return listTypeNames[t]
	}
	return fmt.Sprintf("ListType(%d)", uint8(t))
}

// MarshalText returns the type's name.
func (t ListType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText parses a type's name. The error for another text lists the names.
func (t *ListType) UnmarshalText(text []byte) error {
	i := slices.Index(listTypeNames, string(text))
	if i < 0 {
		return fmt.Errorf("unknown list type %q: use %s", text, strings.Join(listTypeNames, ", "))
	}
	*t = ListType(i)
	return nil
}
