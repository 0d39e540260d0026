package admin

import (
	"encoding/json"
	"math"
)

// Rate is a false positive rate. In JSON it is null if it cannot be predicted, which is
// not a number (NaN) in Go.
type Rate float64

// MarshalJSON implements [json.Marshaler].
func (r Rate) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(r)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(r))
}

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Rate) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*r = Rate(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(r))
}
