package fleet

import (
	"testing"
	"time"

	"spamgate/internal/fleet/fleettest"
)

// TestNext is the table of what a gate does with a list. Versions are written as their sequence
// and content; the content of the file is a letter.
func TestNext(t *testing.T) {
	v := func(sequence uint64, sha string) *Version {
		return &Version{Sequence: sequence, SHA256: sha, Base: "base", Time: time.Unix(int64(sha[0]), 0)}
	}
	type test struct {
		name    string
		kind    Kind
		local   string
		applied *Version
		remote  *Version
		want    step
	}
	check := func(reader bool, tests []test) {
		t.Helper()
		for _, c := range tests {
			if got := (view{c.kind, c.local, c.applied, c.remote, reader}).next(); got != c.want {
				t.Errorf("%s (only reads: %v): step %d, want %d", c.name, reader, got, c.want)
			}
		}
	}
	check(false, []test{
		{"an empty fleet, a new gate without a file", Managed, "", nil, nil, stepNone},
		{"an empty fleet, a new gate", Managed, "a", nil, nil, stepPublish},
		{"a bucket was lost", Managed, "a", v(7, "a"), nil, stepSeed},
		{"a bucket was lost, and the file", Managed, "", v(7, "a"), nil, stepNone},
		{"a bucket was lost, and the file was changed", Managed, "b", v(7, "a"), nil, stepPublish},
		{"a bucket was put back", Managed, "a", v(7, "a"), v(6, "b"), stepSeed},
		{"a bucket was put back, and the file is gone", Managed, "", v(7, "a"), v(6, "b"), stepNone},

		{"a new gate without a file", Managed, "", nil, v(3, "b"), stepTake},
		{"a new gate with the same", Managed, "b", nil, v(3, "b"), stepNote},
		{"a new gate with another list", Managed, "a", nil, v(3, "b"), stepJoin},
		{"a new gate with another copy", Fetched, "a", nil, v(3, "b"), stepTake},

		{"nothing new", Managed, "a", v(3, "a"), v(3, "a"), stepNone},
		{"the file is gone", Managed, "", v(3, "a"), v(3, "a"), stepTake},
		{"the file was changed by hand", Managed, "b", v(3, "a"), v(3, "a"), stepDiffers},
		{"another copy was fetched", Fetched, "b", v(3, "a"), v(3, "a"), stepPublish},
		{"the accounts were changed by hand", Accounts, "b", v(3, "a"), v(3, "a"), stepDiffers},

		{"another gate's edit", Managed, "a", v(3, "a"), v(4, "b"), stepTake},
		{"another gate's edit, and the file is gone", Managed, "", v(3, "a"), v(4, "b"), stepTake},
		{"an edit that was not noted", Managed, "b", v(3, "a"), v(4, "b"), stepNote},
		{"an edit that was not noted, and another one after it", Managed, "base", v(3, "a"), v(5, "b"), stepTake},
		{"another gate's edit, and the file was changed by hand", Managed, "c", v(3, "a"), v(4, "b"), stepLook},
		{"two gates have fetched", Fetched, "c", v(3, "a"), v(4, "b"), stepTake},

		{"a fork, the other one is later", Managed, "a", v(3, "a"), v(3, "b"), stepTake},
		{"a fork, the own one is later", Managed, "b", v(3, "b"), v(3, "a"), stepSeed},
		{"a fork, the own one is later, and the file is gone", Managed, "", v(3, "b"), v(3, "a"), stepTake},
		{"a fork, and the file has the other one", Managed, "a", v(3, "b"), v(3, "a"), stepNote},
		{"a fork, and the file was changed by hand", Managed, "c", v(3, "b"), v(3, "a"), stepDiffers},
	})
	check(true, []test{
		{"a bucket was lost", Managed, "a", v(7, "a"), nil, stepNone},
		{"a bucket was put back", Managed, "a", v(7, "a"), v(6, "b"), stepNone},
		{"another copy was fetched without the fleet", Fetched, "b", v(3, "a"), v(3, "a"), stepTake},
		{"the file was changed by hand", Managed, "b", v(3, "a"), v(3, "a"), stepDiffers},
	})
}

// TestOwnEditIsKnown notes an own edit before the watch tells it: the fleet's version does not look older,
// which the gate would put back.
func TestOwnEditIsKnown(t *testing.T) {
	t.Parallel()
	g := startGate(t, "a", fleettest.Start(t, nil), nil)
	l := g.newList(List{Name: "other", Kind: Managed, Path: g.path("blocked")})
	defer l.cancel()
	before := &Version{Sequence: 1, SHA256: "x"}
	l.applied, l.remote = &applied{Version: *before, Revision: 7}, &remote{version: before, revision: 7}
	if err := l.note(&Version{Sequence: 2, SHA256: "y"}, 8); err != nil {
		t.Fatal(err)
	}
	a, r := l.seen()
	if r.version == nil || r.revision != 8 {
		t.Fatalf("the fleet has %+v", r)
	}
	if next := (view{kind: Managed, local: "y", applied: &a.Version, remote: r.version}).next(); next != stepNone {
		t.Errorf("the next step is %d", next)
	}
}
