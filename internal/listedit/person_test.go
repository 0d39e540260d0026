package listedit

import "testing"

// TestPerson: who was logged in is named in place of root, whom sudo made him.
func TestPerson(t *testing.T) {
	for want, r := range map[string]Record{
		"ann":   {By: "ann", SudoUser: "alice", User: "root"},
		"alice": {SudoUser: "alice", User: "root"},
		"root":  {User: "root"},
		"uid 7": {UID: 7},
	} {
		if got := r.Person(); got != want {
			t.Errorf("%+v: %s", r, got)
		}
	}
}
