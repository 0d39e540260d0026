package lab

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const familiesPage = "../../../docs/hash-families.md"

var update = flag.Bool("update", false, "quote anew in docs/hash-families.md what its files say now")

// quoted is the files that docs/hash-families/remake writes.
func quoted(t *testing.T) map[string][]string {
	t.Helper()
	paths, err := filepath.Glob("../../../docs/hash-families/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files to quote: %v", err)
	}
	files := map[string][]string{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = strings.Split(string(text), "\n")
	}
	return files
}

// TestHashFamiliesDocument: every block of docs/hash-families.md stands in one of
// the files that its command writes, every number in the text does, and the
// pictures are there.
func TestHashFamiliesDocument(t *testing.T) {
	text, err := os.ReadFile(familiesPage)
	if err != nil {
		t.Fatal(err)
	}
	files := quoted(t)
	if *update {
		text = []byte(quoteAnew(string(text), files))
		if err := os.WriteFile(familiesPage, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	blocks, prose := splitPage(string(text))
	if len(blocks) == 0 {
		t.Fatal("no block in the page")
	}
	for _, block := range blocks {
		if !slices.ContainsFunc(filesOf(files), func(lines []string) bool { return quotes(lines, block) }) {
			t.Errorf("in none of the files:\n%s", strings.Join(block, "\n"))
		}
	}
	known := map[string]bool{}
	for _, lines := range files {
		for _, number := range numbers(strings.Join(lines, "\n")) {
			known[number] = true
		}
	}
	for _, number := range numbers(prose) {
		if !known[number] && digits(number) >= 2 {
			t.Errorf("the number %s is in none of the files", number)
		}
	}
	pictures := regexp.MustCompile(`\]\((hash-families/[^)]*)\)`).FindAllStringSubmatch(string(text), -1)
	if len(pictures) == 0 {
		t.Error("no picture in the page")
	}
	for _, p := range pictures {
		if _, err := os.Stat(filepath.Join(filepath.Dir(familiesPage), p[1])); err != nil {
			t.Error(err)
		}
	}
}

// quoteAnew returns the page with the text that the files have now in place of blocks
// that they no longer have: as many paragraphs, from a line on that begins like the
// block, those with the most rows of the same names. Numbers in sentences are left to
// people.
func quoteAnew(page string, files map[string][]string) string {
	blocks, _ := splitPage(page)
	for _, block := range blocks {
		if slices.ContainsFunc(filesOf(files), func(lines []string) bool { return quotes(lines, block) }) || slices.Contains(block, "...") {
			continue
		}
		var found []string
		most := 0
		for _, name := range slices.Sorted(maps.Keys(files)) {
			for i, line := range files[name] {
				if !alike(line, block[0]) {
					continue
				}
				text := paragraphs(files[name][i:], len(paragraphEnds(block)))
				if n := sharedRows(text, block); n > most {
					most, found = n, text
				}
			}
		}
		if found != nil {
			fence := func(lines []string) string { return "```text\n" + strings.Join(lines, "\n") + "\n```" }
			page = strings.Replace(page, fence(block), fence(found), 1)
		}
	}
	return page
}

// alike reports whether two lines begin with the same words, however far apart.
func alike(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	words := min(3, len(x), len(y))
	return words > 0 && slices.Equal(x[:words], y[:words])
}

// sharedRows returns how many rows of b have a row in a that begins with the same
// word, each counted once.
func sharedRows(a, b []string) (n int) {
	names := map[string]int{}
	first := func(line string) string {
		return strings.Join(strings.Fields(line)[:min(1, len(strings.Fields(line)))], "")
	}
	for _, line := range a {
		names[first(line)]++
	}
	for _, line := range b {
		if name := first(line); names[name] > 0 {
			names[name]--
			n++
		}
	}
	return n
}

// paragraphEnds returns the numbers of the empty lines, and the number of lines.
func paragraphEnds(lines []string) (ends []int) {
	for i, line := range lines {
		if line == "" {
			ends = append(ends, i)
		}
	}
	return append(ends, len(lines))
}

// paragraphs returns the first n paragraphs.
func paragraphs(lines []string, n int) []string {
	ends := paragraphEnds(lines)
	return lines[:ends[min(n, len(ends))-1]]
}

func filesOf(files map[string][]string) [][]string {
	var all [][]string
	for _, lines := range files {
		all = append(all, lines)
	}
	return all
}

// splitPage is the lines of the blocks that begin with ```text, and what stands
// in no block, without what links point to and code in the line.
func splitPage(text string) (blocks [][]string, prose string) {
	var block []string
	fence := ""
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```") && fence == "":
			fence, block = line, nil
		case strings.HasPrefix(line, "```"):
			if fence == "```text" {
				blocks = append(blocks, block)
			}
			fence = ""
		case fence != "":
			block = append(block, line)
		default:
			prose += line + "\n"
		}
	}
	prose = regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(prose, "]")
	return blocks, regexp.MustCompile("`[^`]*`").ReplaceAllString(prose, "")
}

// quotes reports whether lines has those of the block, in their order and without
// a gap but where the block has a line "...".
func quotes(lines, block []string) bool {
	var piece []string
	rest := lines
	found := func() bool {
		for i := 0; i+len(piece) <= len(rest); i++ {
			if slices.Equal(rest[i:i+len(piece)], piece) {
				rest, piece = rest[i+len(piece):], nil
				return true
			}
		}
		return false
	}
	for _, line := range block {
		if line != "..." {
			piece = append(piece, line)
		} else if !found() {
			return false
		}
	}
	return found()
}

// A number begins where no name goes on ("XXH3-64") and is no exponent ("2^28").
var numberPattern = regexp.MustCompile(`(?:^|[^\w.^-])(\d[\d,]*(?:\.\d+)?(?:e-?\d+)?)`)

func numbers(text string) []string {
	var found []string
	for _, m := range numberPattern.FindAllStringSubmatch(text, -1) {
		found = append(found, strings.TrimRight(m[1], ","))
	}
	return found
}

// digits counts a number's digits that say something: a power of ten has one.
func digits(number string) int {
	mantissa, _, _ := strings.Cut(strings.ReplaceAll(number, ",", ""), "e")
	mantissa = strings.TrimLeft(strings.ReplaceAll(mantissa, ".", ""), "0")
	return len(strings.TrimRight(mantissa, "0"))
}

// TestQuoteAnew wants a changed block quoted again, and nothing else changed.
func TestQuoteAnew(t *testing.T) {
	files := map[string][]string{"a.txt": {"The first table, made today:", "  3 4", "", "The second table, made today:", "  5 6", "  7 8", "", "end"}}
	page := func(block string) string {
		return "Text with 1 number.\n\n```text\n" + block + "\n```\n\n```text\nend\n```\n"
	}
	for _, c := range []struct{ block, want string }{
		{"The second table, made yesterday:\n  1 2", "The second table, made today:\n  5 6\n  7 8"},
		{"The first table, made yesterday:\n  1 2\n\nThe second", "The first table, made today:\n  3 4\n\nThe second table, made today:\n  5 6\n  7 8"},
		{"The first table, made today:", "The first table, made today:"},
		{"Another text that is in no file", "Another text that is in no file"},
	} {
		if got := quoteAnew(page(c.block), files); got != page(c.want) {
			t.Errorf("%q becomes\n%s\nwant\n%s", c.block, got, page(c.want))
		}
	}
}

func TestQuotes(t *testing.T) {
	lines := []string{"a", "b", "c", "d", "e"}
	for _, c := range []struct {
		block string
		want  bool
	}{
		{"b c", true}, {"a", true}, {"a b c d e", true}, {"b d", false}, {"b ... d e", true},
		{"d ... b", false}, {"b ... b", false}, {"... e", true}, {"f", false}, {"a b c d e f", false},
	} {
		if got := quotes(lines, strings.Fields(c.block)); got != c.want {
			t.Errorf("%s: %t", c.block, got)
		}
	}
	got := numbers("0.97 to 1.80 times (2^28, XXH3-64), 16,915,025 keys, 1e-26. 3 of 11, k=9; 0.00248,")
	want := []string{"0.97", "1.80", "2", "16,915,025", "1e-26", "3", "11", "9", "0.00248"}
	if !slices.Equal(got, want) {
		t.Errorf("numbers %q, want %q", got, want)
	}
	for number, want := range map[string]int{"1e-26": 1, "0.00248": 3, "16,915,025": 8, "1.80": 2, "1,000,000": 1} {
		if digits(number) != want {
			t.Errorf("%s has %d digits, want %d", number, digits(number), want)
		}
	}
}
