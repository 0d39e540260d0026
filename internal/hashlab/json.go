package hashlab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes the whole report as one JSON object: a line for each thing
// measured, and for each row of a matrix. All on one line could not be looked
// at, and a line for each number would be three times as much.
func WriteJSON(w io.Writer, r *Report) error {
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

// breakLines breaks the lines of a compact JSON object, after the commas and the
// brackets of the object, of what is directly in it, and of arrays of arrays or
// objects.
func breakLines(compact []byte) []byte {
	const wide = 2 // levels that have a line for each thing
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

// escaped reports whether what follows text, the begin of a JSON string, is
// escaped: by an odd number of backslashes.
func escaped(text []byte) bool {
	return (len(text)-len(bytes.TrimRight(text, `\`)))%2 == 1
}
