package check

import (
	"testing"

	"spamgate/internal/config"
)

// TestStagesAlike: where one lookup is done for two, both say the same.
func TestStagesAlike(t *testing.T) {
	list := func(name string, stages []string, header string) config.List {
		l := config.DefaultList()
		l.Name, l.HeaderAction = name, header
		if stages != nil {
			l.Stage = stages
		}
		return l
	}
	for _, tt := range []struct {
		lists []config.List
		names []string
		want  bool
	}{
		{[]config.List{list("a", nil, "")}, nil, true},
		{[]config.List{list("a", nil, "reject")}, nil, true},
		{[]config.List{list("a", nil, "tag")}, nil, false},
		{[]config.List{list("a", []string{"header"}, "")}, nil, false},
		{[]config.List{list("a", nil, ""), list("b", nil, "tag")}, []string{"a"}, true},
		{[]config.List{list("a", nil, ""), list("b", nil, "tag")}, []string{"a", "b"}, false},
	} {
		if got := stagesAlike(&config.Config{Lists: tt.lists}, tt.names); got != tt.want {
			t.Errorf("%+v, %q: %v", tt.lists, tt.names, got)
		}
	}
}
