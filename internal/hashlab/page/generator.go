package page

import (
	"bytes"
	"io"
)

const (
	// beginning is what each page begins with, and generator the tag in its head
	// that says who wrote it. The template has both, a test holds it to that.
	beginning = "<!DOCTYPE html>\n"
	generator = `<meta name="generator" content="spamgate hashes compare">`

	// headBytes is how far the generator is looked for: it is the second tag of
	// the head, before the style.
	headBytes = 1 << 10
)

// IsOurs reports whether r holds a page that [Write] wrote, so that a new one may
// take its place: it begins as an HTML page does, and its head names this
// program as the generator. Text that merely quotes the tag is no such page.
func IsOurs(r io.Reader) (bool, error) {
	begin, err := io.ReadAll(io.LimitReader(r, headBytes))
	if err != nil {
		return false, err
	}
	head, ok := bytes.CutPrefix(begin, []byte(beginning))
	if !ok {
		return false, nil
	}
	head, _, _ = bytes.Cut(head, []byte("</head>"))
	return bytes.Contains(head, []byte(generator)), nil
}
