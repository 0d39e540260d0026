package page

import (
	"bytes"
	"io"
)

const (
	// beginning begins each page, and generator is the tag in its head that names
	// this program. A test checks that the template has both.
	beginning = "<!DOCTYPE html>\n"
	generator = `<meta name="generator" content="hashlab compare">`

	// headBytes is how many bytes are searched for the generator: it is the second
	// tag of the head, before the style.
	headBytes = 1 << 10
)

// IsOurs reports whether [Write] wrote the page r, so that a new one may replace
// it: it begins as an HTML page does, and its head names this program as the
// generator. A text that only quotes the tag is not such a page.
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
