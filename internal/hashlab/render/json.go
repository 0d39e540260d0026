package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"spamgate/internal/hashlab"
)

// JSON writes the whole report as one JSON object, with a line for each row of a
// table and of a matrix: one line for all is hard to read, and a line for each
// number would make the text three times as long.
func JSON(w io.Writer, r *hashlab.Report) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(r)
	if err == nil {
		_, err = w.Write(breakLines(text.Bytes()))
	}
	if err != nil {
		return fmt.Errorf("writing the report as JSON: %w", err)
	}
	return nil
}

// breakLines puts line breaks into a compact JSON object: after the commas and
// brackets of the object, of the values directly in it, and of arrays of arrays
// or objects. Package json itself writes one line, or a line for each number.
func breakLines(compact []byte) []byte {
	const wide = 2 // levels that have a line for each value
	var out []byte
	var breaks []bool // by level, whether lines are broken there
	line := func() {
		out = append(out, '\n')
		for range breaks {
			out = append(out, ' ')
		}
	}
	quoted := false
	for i, c := range compact {
		switch {
		case quoted:
			quoted = c != '"' || escaped(compact[:i])
			out = append(out, c)
		case c == '{' || c == '[':
			next := compact[i+1] // there is one: the bracket's other half
			broken := next != '}' && next != ']' && (len(breaks) < wide || c == '[' && (next == '[' || next == '{'))
			breaks = append(breaks, broken)
			out = append(out, c)
			if broken {
				line()
			}
		case c == '}' || c == ']':
			last := breaks[len(breaks)-1]
			breaks = breaks[:len(breaks)-1]
			if last {
				line()
			}
			out = append(out, c)
		case c == ',' && breaks[len(breaks)-1]:
			out = append(out, c)
			line()
		default:
			quoted = c == '"'
			out = append(out, c)
		}
	}
	return out
}

// escaped reports whether text, the beginning of a JSON string, ends in an odd
// number of backslashes, which escape the next character.
func escaped(text []byte) bool {
	return (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 1
}
