package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"spamgate/internal/fleet/fleettest"
)

// fetched makes the gate share a list from a URL, too.
func fetched(o *Options) {
	o.Lists = append(o.Lists, List{Name: "web.list", Kind: Fetched, Path: filepath.Join(o.StateDir, "copies", "web", "list"), MaxBytes: 64 << 20})
}

// fetcher returns the gates that are to fetch the list.
func fetcher(gates ...*gate) (names []string) {
	for _, g := range gates {
		if g.Member != nil && g.Fetches("web.list") {
			names = append(names, g.o.Name)
		}
	}
	return names
}

// TestFetched lets one gate at a time fetch a list, and all have it. What changes in a
// large list travels as an edit.
func TestFetched(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	told := make(chan string, 100)
	gates := map[string]*gate{}
	for _, name := range []string{"a", "b"} {
		gates[name] = startGate(t, name, s, func(o *Options) {
			fetched(o)
			o.FetchesChanged = func(list string, fetches bool) { told <- fmt.Sprint(name, " ", list, " ", fetches) }
		})
	}
	a, b := gates["a"], gates["b"]
	step := func() bool { return a.Status().Connected && b.Status().Connected && len(fetcher(a, b)) == 1 }
	eventually(t, "one gate fetches", step)
	first := gates[fetcher(a, b)[0]]
	content := lines(20_000, "web")
	first.write("web.list", content)
	if err := os.WriteFile(first.path("web.list")+".json", []byte(`{"etag": "x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	first.look("web.list")
	equal(t, "web.list", a, b)
	content = strings.Replace(content, "web0010000", "changed", 1) + "last@example.net\n"
	first.write("web.list", content)
	first.look("web.list")
	has(t, "web.list", content, a, b)
	v := equal(t, "web.list", a, b)
	if v.Since == 0 || len(v.Edit) > 4096 || v.Accepted {
		t.Errorf("got %+v", v)
	}
	second := map[*gate]*gate{a: b, b: a}[first]
	if state, err := os.ReadFile(second.path("web.list") + ".json"); string(state) != `{"etag":"x"}` {
		t.Errorf("the other gate has the state %q, %v", state, err)
	}
	first.stop()
	eventually(t, "the other gate fetches", func() bool { return second.Fetches("web.list") })
	s.Stop()
	eventually(t, "it fetches alone", func() bool { return !second.Status().Connected && second.Fetches("web.list") })
	if len(told) == 0 {
		t.Error("FetchesChanged was never called")
	}
}

// TestFetchFails has a gate that cannot fetch a list: it leaves that to the other one.
func TestFetchFails(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	var fails atomic.Bool
	a := startGate(t, "a", s, func(o *Options) {
		fetched(o)
		o.FetchFails = func(list string) bool { return list == "web.list" && fails.Load() }
	})
	eventually(t, "the first gate fetches", func() bool { return a.Status().Connected && a.Fetches("web.list") })
	b := startGate(t, "b", s, fetched)
	eventually(t, "the second gate is connected", func() bool { return b.Status().Connected })
	fails.Store(true)
	eventually(t, "the second gate fetches", func() bool { return slices.Equal(fetcher(a, b), []string{"b"}) })
	fails.Store(false)
	b.stop()
	eventually(t, "the first gate fetches again, after a while", func() bool { return a.Fetches("web.list") })
}

// TestLargeList edits a long managed list: it is stored as a whole when there are many edits.
func TestLargeList(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := newGate(t, "a", s, nil), startGate(t, "b", s, nil)
	content := noise(10_000)
	a.write("blocked", content)
	a.start()
	equal(t, "blocked", a, b)
	b.stop()
	var wholes []int
	for i := range maxEdits + 3 {
		a.mustAdd("blocked", fmt.Sprintf("new%d@example.net", i))
		if v := a.noted("blocked"); v.Since == 0 {
			wholes = append(wholes, i)
		}
	}
	if !slices.Equal(wholes, []int{maxEdits}) {
		t.Errorf("stored as a whole: %v", wholes)
	}
	b.start() // behind by more than the edits
	equal(t, "blocked", a, b)
	b.stop()
	for i := range 3 {
		a.mustAdd("blocked", fmt.Sprintf("more%d@example.net", i))
	}
	b.start() // it takes one edit after the other
	equal(t, "blocked", a, b)
	c := startGate(t, "c", s, nil) // an empty disk
	equal(t, "blocked", a, b, c)
}
