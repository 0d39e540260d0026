package blocklist

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"spamgate/hashfamily"
)

var updateDocument = flag.Bool("update", false, "write the tables of docs/filters.md")

// TestFiltersDocument holds the tables of docs/filters.md against the code, or
// with -update writes them.
func TestFiltersDocument(t *testing.T) {
	const path = "../docs/filters.md"
	page, err := os.ReadFile(path)
	must(t, err)
	for name, table := range map[string]string{"families": familiesTable(t), "memory": memoryTable(t)} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end -->"
		before, rest, found := strings.Cut(string(page), begin)
		stands, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("%s has no table %s", path, name)
		}
		if stands != table && !*updateDocument {
			t.Errorf("the table %s of %s should be (-update writes it):\n%s", name, path, table)
		}
		page = []byte(before + begin + table + end + after)
	}
	if *updateDocument {
		must(t, os.WriteFile(path, page, 0o644))
	}
}

// familiesTable says which families go with which kinds.
func familiesTable(t *testing.T) string {
	families := []string{"classic", "classic9", "classic:RS,JS,AP", "weighted", "digest", "double", "seeded"}
	var b strings.Builder
	b.WriteString("| kind |")
	for _, name := range families {
		fmt.Fprintf(&b, " `%s` |", name)
	}
	b.WriteString(" none given |\n|---|" + strings.Repeat("---|", len(families)+1) + "\n")
	for _, kind := range Kinds() {
		fmt.Fprintf(&b, "| `%s` |", kind)
		for _, name := range families {
			spec, err := hashfamily.ParseSpec(name)
			must(t, err)
			b.WriteString(map[bool]string{true: " yes |", false: " – |"}[kind.TakesFamily(spec)])
		}
		family := "its own hash"
		if name := kind.DefaultFamily(); name != "" {
			family = "`" + name + "`"
		}
		fmt.Fprintf(&b, " %s |\n", family)
	}
	return b.String()
}

// memoryTable is what each kind takes, and its rate, with so many entries in one
// list: by the sizes that the code chooses and the formulas of package bloom.
func memoryTable(t *testing.T) string {
	sizes := []uint64{1_000_000, 10_000_000, 100_000_000}
	var b strings.Builder
	b.WriteString("| `[filter]` | 1 million | 10 million | 100 million |\n|---|---|---|---|\n")
	for _, f := range []struct {
		text string
		Filter
	}{
		{`kind = "classic"`, Filter{}},
		{`kind = "sharded"`, Filter{Kind: KindSharded}},
		{`kind = "auto"`, Filter{Kind: KindAuto}},
		{`kind = "sized"`, Filter{Kind: KindSized}},
		{`kind = "sized"`, Filter{Kind: KindSized, FPR: 1e-3}},
		{`kind = "counting"`, Filter{Kind: KindCounting}},
		{`kind = "fuse"`, Filter{Kind: KindFuse}},
		{`kind = "fuse"`, Filter{Kind: KindFuse, FPR: 1e-4}},
		{`kind = "fuse"`, Filter{Kind: KindFuse, FPR: 4e-3}},
	} {
		text := f.text
		if f.FPR != 0 {
			text += fmt.Sprintf(", fpr = %v", f.FPR)
		}
		fmt.Fprintf(&b, "| `%s` |", text)
		for _, n := range sizes {
			cost, err := f.Cost(n)
			must(t, err)
			fmt.Fprintf(&b, " %.0f MiB, %.1g |", float64(cost.Bytes)/(1<<20), cost.FPR)
		}
		b.WriteString("\n")
	}
	return b.String()
}
