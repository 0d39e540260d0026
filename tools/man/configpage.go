package main

import (
	"fmt"
	"strings"
	"time"

	"spamgate/internal/config/reference"
	"spamgate/internal/version"
)

// configPage returns the manual page spamgate.toml(5).
func configPage(date time.Time) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH \"SPAMGATE.TOML\" \"5\" %q \"spamgate %s\" \"spamgate\"\n.nr HY 0\n.nh\n.ad l\n", date.Format(time.DateOnly), version.Number)
	b.WriteString(intro)
	for _, t := range reference.Tables() {
		title := t.Header()
		if t.Name == "" {
			title = "BEFORE THE FIRST TABLE"
		}
		fmt.Fprintf(&b, ".SH %s\n", roff(title))
		paragraphs(&b, t.About, "")
		for _, s := range t.Sections {
			if s.Title != "" {
				fmt.Fprintf(&b, ".SS %s\n", roff(s.Title))
			}
			paragraphs(&b, s.About, "")
			for _, e := range s.Entries {
				entry(&b, e)
			}
		}
	}
	b.WriteString(seeAlso)
	return []byte(b.String())
}

const intro = `.SH NAME
spamgate.toml \- the configuration of spamgate
.SH SYNOPSIS
.B /etc/spamgate/config.toml
.SH DESCRIPTION
A configuration is a file in TOML (https://toml.io). It needs at least one
[[list]]; every other key has a default, so that a file has only the keys that
differ. An unknown key is an error. A relative path is relative to the directory
of the file. Durations are in quotes, with a unit: "500ms", "30s", "5m", "1h".
.PP
.EX
hostname = "gate.example"

[listen]
addr = ":25"

[next_hop]
addr = "smtp://127.0.0.1:10025"

[[list]]
name = "blocked"
path = "/etc/spamgate/lists/blocked.txt"
.EE
.PP
.B spamgate config check
checks a file before a restart or reload,
.B spamgate config show
prints the values that count, and
.B spamgate config show \-\-defaults \-\-explain
prints a file with all keys and the texts below. Each key is shown with its
default.
`

const seeAlso = `.SH SEE ALSO
\fBspamgate(1)\fP, \fBspamgate\-config(1)\fP, \fBspamgate\-serve(1)\fP
`

// entry writes the keys with their defaults, what they accept, and what they do.
func entry(b *strings.Builder, e reference.Entry) {
	for i, k := range e.Keys {
		value, _ := k.TOML() // defaults can be written
		tag := ".TP"
		if i > 0 {
			tag = ".TQ"
		}
		fmt.Fprintf(b, "%s\n\\fB%s = %s\\fP\n", tag, roff(k.Name), roff(value))
	}
	fmt.Fprintf(b, "\\fI%s\\fP\n", roff(e.Keys[0].Type))
	paragraphs(b, e.Text, ".IP\n")
}

// paragraphs writes lines, each paragraph after a macro if there is one.
func paragraphs(b *strings.Builder, lines []string, macro string) {
	for i, p := range reference.Paragraphs(lines) {
		if macro != "" {
			b.WriteString(macro)
		} else if i > 0 {
			b.WriteString(".PP\n")
		}
		text := roff(p.Text) + "\n"
		if p.Formatted {
			text = ".EX\n" + text + ".EE\n"
		}
		b.WriteString(text)
	}
}

// roff returns a text that groff shows as it is.
func roff(text string) string {
	text = minus(strings.ReplaceAll(text, `\`, `\e`))
	for _, control := range []string{".", "'"} {
		text = strings.ReplaceAll(text, "\n"+control, "\n\\&"+control)
		if strings.HasPrefix(text, control) {
			text = `\&` + text
		}
	}
	return text
}
