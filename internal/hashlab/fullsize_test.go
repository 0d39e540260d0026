package hashlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"spamgate/hashfamily"
)

// smallSize is a full-size measurement of a small filter.
var smallSize = fullSize{m: 1 << 16, members: []int{2400, 4129}, queries: 60_000, seed: 1}

func TestFullSize(t *testing.T) {
	for _, name := range []string{"classic", "double", Ideal, XXH3} {
		s := subjectNamed(t, name, 11)
		rows, err := smallSize.measure(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != 2 {
			t.Fatalf("%s: %d rows", name, len(rows))
		}
		for i, r := range rows {
			if !r.FullSize || r.N != smallSize.members[i] || r.Filters != fullSizeFilters || r.Trials != fullSizeFilters*60_000 ||
				r.Name != name || r.Corpus != fullSizeCorpus || math.Abs(r.Load-float64(r.N)/4129) > 0.001 {
				t.Errorf("%+v", r)
			}
			if name != "classic" && (math.Abs(r.Fill/r.ExpectedFill-1) > 0.02 || r.Rate.Low > r.Formula || r.Rate.High < r.Formula) {
				t.Errorf("%s, n = %d: fill %v, expected %v; rate %+v, formula %v", name, r.N, r.Fill, r.ExpectedFill, r.Rate, r.Formula)
			}
		}
		again, err := smallSize.measure(context.Background(), s)
		if err != nil || !slices.Equal(again, rows) {
			t.Errorf("%s measured again: %+v, %v; before %+v", name, again, err, rows)
		}
	}
}

func TestFullSizeInfo(t *testing.T) {
	few := fullSize{m: 1 << 10, members: []int{20, 30}, queries: 22, seed: 1}
	var all Corpus
	for filter := range fullSizeFilters {
		for i := range few.keys() {
			all.Keys = append(all.Keys, few.addresses(filter).append(nil, uint64(i)))
		}
	}
	for i, a := range all.Keys {
		for _, b := range all.Keys[:i] {
			if bytes.Equal(a, b) {
				t.Errorf("%q stands twice", a)
			}
		}
	}
	got, err := few.info(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := all.info()
	if got.SHA256 != want.SHA256 || got.Bytes != want.Bytes || got.Keys != want.Keys {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestFullSizeStops(t *testing.T) {
	if _, err := smallSize.measure(cancelled(), subjectNamed(t, "classic", 11)); !errors.Is(err, context.Canceled) {
		t.Errorf("measure: %v", err)
	}
	if _, err := smallSize.info(cancelled()); !errors.Is(err, context.Canceled) {
		t.Errorf("info: %v", err)
	}
	broken := errors.New("broken")
	s := subject{k: 1, make: func(uint64, uint64) (hashfamily.Family, error) { return nil, broken }}
	if _, err := smallSize.measure(context.Background(), s); !errors.Is(err, broken) {
		t.Errorf("a family that can't be made: %v", err)
	}
}

func TestFullSizeSubjects(t *testing.T) {
	for _, c := range []struct {
		families []string
		want     []string
	}{
		{nil, []string{"classic", "double", Ideal, XXH3, "classic9", Ideal, XXH3}},
		{[]string{"weighted", "seeded"}, []string{"weighted", Ideal, XXH3, "seeded", Ideal, XXH3}},
		{[]string{"classic:BP"}, nil},
	} {
		families, err := choose(c.families)
		if err != nil {
			t.Fatal(err)
		}
		all, err := groups(families)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range fullSizeSubjects(Options{Families: c.families}, all) {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.families, got, c.want)
		}
	}
}

// TestFieldsTellTheFilters wants the numbers of filters that the page of fields
// tells to be those that are made.
func TestFieldsTellTheFilters(t *testing.T) {
	page, err := os.ReadFile("../../docs/hash-families-fields.md")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("- `filters` (at least %d): random filters, %[1]d, with `--full` %d, where `full_size` %d\n", splits, splitsFull, fullSizeFilters)
	if !strings.Contains(string(page), want) {
		t.Errorf("docs/hash-families-fields.md does not say %q", want)
	}
}
