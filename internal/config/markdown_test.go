package config_test

import (
	"fmt"
	"strings"

	"spamgate/internal/config/reference"
)

// markdown returns the page docs/config.md.
func markdown() string {
	var b strings.Builder
	b.WriteString(intro)
	separator := "\nThe tables: "
	for _, t := range reference.Tables()[1:] {
		fmt.Fprintf(&b, "%s[`%s`](#%s)", separator, t.Header(), strings.ReplaceAll(t.Name, ".", ""))
		separator = ",\n"
	}
	b.WriteString(".\n")
	for _, t := range reference.Tables() {
		if t.Name != "" {
			fmt.Fprintf(&b, "\n## %s\n", t.Header())
		}
		paragraphs(&b, t.About)
		for _, s := range t.Sections {
			if s.Title != "" {
				fmt.Fprintf(&b, "\n### %s\n", s.Title)
			}
			paragraphs(&b, s.About)
			for _, e := range s.Entries {
				entry(&b, t, e)
			}
		}
	}
	return b.String()
}

const intro = `# Configuration

<!-- Made of internal/config/reference/reference.toml by "go test ./internal/config -update". -->

` + "```toml" + `
hostname = "gate.example"

[listen]
addr = ":25"

[next_hop]
addr = "smtp://127.0.0.1:10025"

[[list]]
name = "blocked"
path = "/etc/spamgate/lists/blocked.txt"
` + "```" + `

A configuration is a file in [TOML](https://toml.io). It needs at least one ` + "`[[list]]`" + `; every other key has a default, so
that a file has only the keys that differ. An unknown key is an error. A relative path is relative to the directory of
the file. Durations are in quotes, with a unit: ` + "`\"500ms\"`, `\"30s\"`, `\"5m\"`, `\"1h\"`" + `.

| to | command |
|---|---|
| check a file before a restart or reload | ` + "`spamgate config check --config FILE`" + ` |
| see which values count, and from which line | ` + "`spamgate config show --config FILE`" + ` |
| get a file with all keys and what they do | ` + "`spamgate config show --defaults --explain`" + ` |

Below a key's name stands its default, with the type and range unless the default shows them. Error messages name keys in the same
way, and spamgate.toml(5) has the same text.
`

// entry writes a heading with the keys, their default and type, and what they do.
func entry(b *strings.Builder, t reference.Table, e reference.Entry) {
	var names []string
	for _, k := range e.Keys {
		names = append(names, k.Name)
	}
	heading := strings.Join(names, ", ")
	if t.Name != "" {
		heading = t.Name + "." + heading
	}
	fmt.Fprintf(b, "\n#### %s\n\n", heading)
	last := ""
	for _, k := range e.Keys {
		value, _ := k.TOML() // defaults can be written
		item := "`" + value + "`"
		if k.Type != "string" && k.Type != "true or false" { // the default shows these
			item += ": " + inline(k.Type)
		}
		if item != last { // keys that are explained together mostly have one default
			fmt.Fprintln(b, item)
		}
		last = item
	}
	paragraphs(b, e.Text)
}

// paragraphs writes lines as Markdown.
func paragraphs(b *strings.Builder, lines []string) {
	for _, p := range reference.Paragraphs(lines) {
		if p.Formatted {
			fmt.Fprintf(b, "\n```\n%s\n```\n", p.Text)
		} else {
			fmt.Fprintf(b, "\n%s\n", inline(p.Text))
		}
	}
}

// inline escapes what Markdown would not show as it is.
func inline(s string) string {
	return strings.NewReplacer("*", `\*`, "<", `\<`).Replace(s)
}
