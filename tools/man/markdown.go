package main

import "strings"

// markdown turns a help text into Markdown. Paragraphs with indented lines keep their
// lines; the others are filled. The exit codes become a section.
func markdown(text string) string {
	var out []string
	for paragraph := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			out = append(out, "```\n"+outdent(paragraph)+"\n```")
			continue
		}
		if codes, ok := strings.CutPrefix(paragraph, "Exit codes: "); ok {
			out = append(out, "# EXIT STATUS")
			paragraph = codes
		}
		out = append(out, escape(paragraph))
	}
	return strings.Join(out, "\n\n")
}

// outdent removes the two blanks before each line of an example.
func outdent(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "  "), "\n  ", "\n")
}

// escaper escapes what has a meaning within a line of Markdown.
var escaper = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "&", `\&`, "|", `\|`, "~", `\~`, "#", `\#`)

// escape returns Markdown that shows the text as it is.
func escape(text string) string { return escaper.Replace(text) }
