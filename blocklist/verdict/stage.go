package verdict

import (
	"fmt"
	"slices"
	"strings"
)

// Stage says where a sender stands: in the envelope or in a header field. It is
// a bit set, so that a list can name several. The zero Stage is not valid.
type Stage uint8

// The stages.
const (
	Envelope Stage = 1 << iota // the reverse-path
	Header                     // an address in a header field, such as From

	AllStages = Envelope | Header
)

var stageNames = []string{"envelope", "header"}

// Validate returns an error for a stage that does not exist, and for none.
func (s Stage) Validate() error {
	if s == 0 || s&^AllStages != 0 {
		return fmt.Errorf("unknown stage %d: use %s", uint8(s), strings.Join(stageNames, ", "))
	}
	return nil
}

// String returns the stages' names with commas between: "envelope,header".
func (s Stage) String() string { return namesOf(stageNames, uint8(s)) }

// MarshalText returns what String returns.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses what String returns: one stage's name, or several with
// commas between.
func (s *Stage) UnmarshalText(text []byte) error {
	return parseNames("stage", stageNames, string(text), (*uint8)(s))
}

// namesOf returns the names of the bits of a set, with commas between.
func namesOf(all []string, set uint8) string {
	var names []string
	for i, name := range all {
		if set&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// parseNames parses what namesOf returns: one name, or several with commas between.
func parseNames(what string, all []string, text string, set *uint8) error {
	var bits uint8
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(all, name)
		if i < 0 {
			return fmt.Errorf("unknown %s %q: use %s", what, name, strings.Join(all, ", "))
		}
		bits |= 1 << i
	}
	*set = bits
	return nil
}

// Reading says how an address was read from a message. ReadForm, ReadWord and
// ReadName may be wrong guesses. So these can only block: allow lists and
// exceptions do not count.
type Reading uint8

// The readings.
const (
	ReadAddress Reading = iota // an address, as it was written

	// ReadForm is what servers may make of something that is not an address, such
	// as "user%domain". "user@" asks for entries of a local part.
	ReadForm

	// ReadWord is ReadForm for what may be a part of a name. Only entries that
	// name the local part count: "user@" and "user@domain".
	ReadWord

	// ReadName is ReadWord beside addresses that allow entries let in. Only
	// entries of whole addresses count: "user@domain".
	ReadName

	// ReadDomain is an address whose local part says nothing, as a DNS client asks
	// for a domain. It is not a guess. Only entries of domains count.
	ReadDomain
)
