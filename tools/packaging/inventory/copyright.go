package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

const copyrightHead = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: spamgate
Comment: The program is linked statically. The paragraphs after the first are
 about the Go modules in it; "Files" names the module.

Files: *
Copyright: the authors of spamgate
License: none-chosen-yet
 The owner has not chosen a licence yet. Until then all rights are reserved.
`

// writeCopyright writes Debian's copyright file, in its machine-readable format. Debian
// wants the text of the Apache licence to be named, not copied.
func writeCopyright(w io.Writer, modules []module) error {
	b := bufio.NewWriter(w)
	fmt.Fprint(b, copyrightHead)
	for _, m := range modules {
		var ids, names []string
		var texts strings.Builder
		for _, l := range m.licences {
			if l.id != "" {
				ids = append(ids, l.id)
			}
			names = append(names, holders(l.text)...)
			if l.id == "Apache-2.0" {
				texts.WriteString(paragraph("On Debian systems, the text of the Apache License, version 2.0, is in the file\n/usr/share/common-licenses/Apache-2.0."))
				continue
			}
			texts.WriteString(paragraph(l.text))
		}
		if names == nil {
			names = []string{"the authors of " + m.Path}
		}
		if ids == nil {
			ids = []string{"as-below"}
		}
		fmt.Fprintf(b, "\nFiles: %s/*\nCopyright: %s\nLicense: %s\n%s", m.Path,
			strings.Join(names, "\n           "), licenceName(m.Path, ids), texts.String())
	}
	return b.Flush()
}

// licenceName returns the short name of a module's licences. Modules have copies of
// one licence with different names in them, so each has a text, and a name, of its own.
func licenceName(path string, ids []string) string {
	own := strings.NewReplacer("/", "-", "~", "-").Replace(path)
	for i, id := range ids {
		if id != "Apache-2.0" {
			ids[i] = id + "~" + own
		}
	}
	return strings.Join(ids, " and ")
}

// paragraph returns text as continuation lines of a field.
func paragraph(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		if line = strings.TrimRight(line, " \t\r\n"); line == "" {
			line = "."
		}
		b.WriteString(" " + strings.TrimPrefix(line, "\ufeff") + "\n")
	}
	return b.String()
}
