package hashlab

import (
	"encoding/json"
	"math"
)

// jsonInterval is an [Interval] in JSON, which has no infinite numbers.
type jsonInterval struct {
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// Known reports whether x is a finite number: an [Interval] has +Inf for an unknown
// one.
func Known(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }

// MarshalJSON writes null for unknown numbers.
func (i Interval) MarshalJSON() ([]byte, error) {
	number := func(x float64) *float64 {
		if !Known(x) {
			return nil
		}
		return &x
	}
	return json.Marshal(jsonInterval{number(i.Value), number(i.Low), number(i.High)})
}

// UnmarshalJSON reads the output of MarshalJSON. A number that is null or missing is
// unknown: +Inf.
func (i *Interval) UnmarshalJSON(text []byte) error {
	var j jsonInterval
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	number := func(x *float64) float64 {
		if x == nil {
			return math.Inf(1)
		}
		return *x
	}
	*i = Interval{number(j.Value), number(j.Low), number(j.High)}
	return nil
}
