package smtpfilter

import (
	"slices"
	"testing"
)

// TestUnique wants each class once, whichever come first: a class that is lost has no say.
func TestUnique(t *testing.T) {
	a, b, c := new(Class), new(Class), new(Class)
	for _, tt := range []struct{ used, want []*Class }{
		{nil, nil},
		{[]*Class{a}, []*Class{a}},
		{[]*Class{a, a}, []*Class{a}},
		{[]*Class{a, a, b}, []*Class{a, b}},
		{[]*Class{a, b, a, c, b}, []*Class{a, b, c}},
	} {
		if got := unique(tt.used); !slices.Equal(got, tt.want) {
			t.Errorf("%d classes: %d are left, want %d", len(tt.used), len(got), len(tt.want))
		}
	}
}
