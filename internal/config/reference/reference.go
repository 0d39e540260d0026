// Package reference explains every configuration key. Its source is reference.toml;
// docs/config.md, the manual page spamgate.toml(5) and "spamgate config show
// --explain" are made of it.
package reference

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"spamgate/internal/config"
)

//go:embed reference.toml
var source string

// Table is a table of the configuration.
type Table struct {
	config.Table
	About    []string // lines about the table
	Sections []Section
}

// Section is a part of a table. The first one of a table has no title.
type Section struct {
	Title   string
	About   []string
	Entries []Entry
}

// Entry explains one key, or several that belong together.
type Entry struct {
	Keys []config.Key
	Text []string // its lines; those that begin with a blank keep their form
}

// Tables returns the reference in the order of a configuration file.
func Tables() []Table {
	defaults := config.Defaults()
	tables := []Table{{Table: defaults[0], Sections: []Section{{}}}}
	for block := range strings.SplitSeq(strings.TrimSpace(source), "\n\n") {
		text, keys := cut(block)
		if header, ok := tableOf(keys); ok {
			for _, t := range defaults {
				if t.Name != "" && t.Header() == header {
					tables = append(tables, Table{Table: t, About: text, Sections: []Section{{}}})
				}
			}
			continue
		}
		t := &tables[len(tables)-1]
		last := &t.Sections[len(t.Sections)-1]
		switch {
		case len(keys) > 0:
			last.Entries = append(last.Entries, Entry{known(t.Table, keys), text})
		case strings.HasPrefix(text[0], "## "):
			t.Sections = append(t.Sections, Section{Title: text[0][3:], About: trimmed(text[1:])})
		} // else it is about the file
	}
	return tables
}

// once returns what Tables does, which nobody may change.
var once = sync.OnceValue(Tables)

// cut separates the comment of a block from its other lines.
func cut(block string) (text, lines []string) {
	for line := range strings.SplitSeq(block, "\n") {
		if comment, ok := strings.CutPrefix(line, "#"); ok {
			text = append(text, strings.TrimPrefix(comment, " "))
		} else {
			lines = append(lines, line)
		}
	}
	return text, lines
}

// tableOf returns the header of a table if the lines begin with one.
func tableOf(lines []string) (header string, ok bool) {
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "[") {
		return "", false
	}
	return lines[0], true
}

// known returns the keys that the lines set, with their types and defaults.
func known(t config.Table, lines []string) (keys []config.Key) {
	for _, line := range lines {
		name, _, _ := strings.Cut(line, " = ")
		for _, k := range t.Keys {
			if k.Name == name {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

func trimmed(lines []string) []string {
	for len(lines) > 0 && lines[0] == "" {
		lines = lines[1:]
	}
	return lines
}

// Explain returns the lines about a key of a table, after those about the table or
// section that begins with it. The second key of an entry has none. A key of
// [[listener]] is explained in [listen].
func Explain(table, key string) []string {
	for _, t := range once() {
		if t.Name != table {
			continue
		}
		for i, s := range t.Sections {
			for j, e := range s.Entries {
				if e.Keys[0].Name != key {
					continue
				}
				var lines []string
				if i == 0 && j == 0 {
					lines = paragraph(lines, t.About)
				}
				if j == 0 && s.Title != "" {
					lines = append(lines, "## "+s.Title, "")
					lines = paragraph(lines, s.About)
				}
				return append(lines, e.Text...)
			}
		}
	}
	if table == "listener" {
		return Explain("listen", key)
	}
	return nil
}

// paragraph appends text and an empty line, unless there is no text.
func paragraph(lines, text []string) []string {
	if len(text) == 0 {
		return lines
	}
	return append(append(lines, text...), "")
}

// Sort sorts the keys of tables in the order of the reference.
func Sort(tables []config.Table) {
	rank := map[string]int{}
	for _, t := range once() {
		for _, s := range t.Sections {
			for _, e := range s.Entries {
				for _, k := range e.Keys {
					rank[t.Name+"."+k.Name] = len(rank)
				}
			}
		}
	}
	for _, t := range tables {
		line := func(k config.Key) int {
			if n, ok := rank[t.Name+"."+k.Name]; ok {
				return n
			}
			return len(rank) + rank["listen."+k.Name] // of a [[listener]], after its own
		}
		slices.SortFunc(t.Keys, func(a, b config.Key) int { return cmp.Compare(line(a), line(b)) })
	}
}
