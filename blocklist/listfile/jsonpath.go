package listfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// pathHint is the hint for a path that is missing or leads elsewhere.
const pathHint = `column (--column) is the path to the entries: names with dots between, such as "data.domain"`

// maxDepth bounds the arrays and objects inside each other.
const maxDepth = 100

// jsonPath is the path to the entries, a name for each object on the way. "*" means
// each of its members. Arrays on the way are not named.
type jsonPath []string

// jsonPath returns the path that Options.Column says, or if it is empty, the one of the
// first object in the text: the only member with a usual name.
func (o *output) jsonPath(in *bufio.Reader) (jsonPath, error) {
	switch column := strings.TrimSpace(o.options.Column); column {
	case "":
	case ".":
		return nil, nil
	default:
		return strings.Split(column, "."), nil
	}
	sample, _ := in.Peek(readBuffer) // reading returns an error again
	members, more := firstMembers(sample)
	if members == nil {
		return nil, nil // no object, so an array of strings or an error
	}
	for _, names := range [][]string{usualColumns, {"url"}} {
		if found := columnsNamed(members, names...); len(found) == 1 && more {
			path := jsonPath{members[found[0]]}
			o.result.Notes = append(o.result.Notes, fmt.Sprintf("the entries are in the objects' member %q", clip(path[0])))
			return path, nil
		} else if len(found) > 0 {
			break
		}
	}
	if len(members) == 0 {
		return nil, errors.New("an object without members, or one that is cut short")
	}
	return nil, fmt.Errorf("an object; %s; it has: %s", pathHint, clip(strings.Join(members, ", ")))
}

// firstMembers returns the names of the members of the first object, if the text is an
// array of objects or begins with an object, and reports whether it may be one of many:
// an element of an array, or one that another follows. An object that is alone may be
// the error message of a server.
func firstMembers(sample []byte) (names []string, more bool) {
	d := json.NewDecoder(bytes.NewReader(sample))
	first, _ := d.Token()
	inArray := first == json.Delim('[')
	if inArray {
		first, _ = d.Token()
	}
	if first != json.Delim('{') {
		return nil, false
	}
	names = []string{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return names, false
		}
		text, ok := name.(string)
		var value json.RawMessage
		if !ok || d.Decode(&value) != nil {
			return names, false
		}
		names = append(names, text)
	}
	if end, _ := d.Token(); end != json.Delim('}') {
		return names, false
	}
	if inArray {
		return names, true
	}
	next, _ := d.Token()
	return names, next == json.Delim('{')
}

// jsonWalk walks through a text along a path.
type jsonWalk struct {
	*jsonReader
	o       *output
	path    string // the whole path, for messages
	depth   int
	reached bool // the end of the path was found, or an empty array before it
}

// token returns the next token; io.EOF means the end of the text.
func (w *jsonWalk) token() (json.Token, error) {
	t, err := w.Token()
	if err == io.EOF && w.depth == 0 {
		return nil, io.EOF
	}
	if err != nil {
		return nil, w.explain(err)
	}
	w.text.limit = w.InputOffset() + maxRecord
	w.line() // forgets the line feeds before
	switch t {
	case json.Delim('['), json.Delim('{'):
		if w.depth++; w.depth > maxDepth {
			return nil, w.wrong("more than %d arrays and objects inside each other", maxDepth)
		}
	case json.Delim(']'), json.Delim('}'):
		w.depth--
	}
	return t, nil
}

// objects reads the outermost objects, one after the other. The first has begun.
func (w *jsonWalk) objects(path jsonPath) error {
	for {
		if err := w.object(path); err != nil {
			return err
		}
		switch next, err := w.token(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case next != json.Delim('{'):
			return w.wrong("want another object or nothing after the object, got %v", next)
		}
	}
}

// end reads the end of the text.
func (w *jsonWalk) end() error {
	switch rest, err := w.token(); {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	default:
		return w.wrong("want nothing after the array, got %v", rest)
	}
}

// value reads a value, at the end of the path or on the way.
func (w *jsonWalk) value(path jsonPath) error {
	t, err := w.token()
	switch {
	case err != nil:
		return err
	case t == json.Delim('['):
		return w.array(path)
	case t == json.Delim('{'):
		return w.object(path)
	case len(path) > 0:
		return w.refuse(fmt.Sprintf("not an object with %q", path[0]))
	}
	w.reached = true
	if text, ok := t.(string); ok {
		w.o.uncommented(w.line(), text)
		return w.o.err
	}
	return w.refuse("not a string")
}

// array reads an array that has begun.
func (w *jsonWalk) array(path jsonPath) error {
	w.reached = w.reached || len(path) == 0 || !w.More()
	var element json.RawMessage
	for w.More() {
		if len(path) > 0 {
			if err := w.value(path); err != nil {
				return err
			}
			continue
		}
		if err := w.Decode(&element); err != nil {
			return w.explain(err)
		}
		if w.o.element(w.line(), element); w.o.err != nil {
			return w.o.err
		}
		w.text.limit = w.InputOffset() + maxRecord
	}
	_, err := w.token()
	return err
}

// object reads an object that has begun. At the end of the path its names are entries.
func (w *jsonWalk) object(path jsonPath) error {
	found := len(path) == 0
	w.reached = w.reached || found
	for w.More() {
		name, err := w.token()
		if err != nil {
			return err
		}
		text, _ := name.(string)
		switch {
		case len(path) > 0 && (path[0] == text || path[0] == "*"):
			found = true
			err = w.value(path[1:])
		case len(path) == 0:
			w.o.uncommented(w.line(), text)
			if err = w.o.err; err == nil {
				err = w.skip()
			}
		default:
			err = w.skip()
		}
		if err != nil {
			return err
		}
	}
	if _, err := w.token(); err != nil {
		return err
	}
	if !found {
		return w.refuse(fmt.Sprintf("an object without %q", path[0]))
	}
	return nil
}

// refuse reports a value at the current line.
func (w *jsonWalk) refuse(what string) error {
	w.o.refuse(w.line(), Problem{Text: w.path, What: what, Hint: pathHint})
	return w.o.err
}

// skip reads a value and ignores it.
func (w *jsonWalk) skip() error {
	for depth := w.depth; ; {
		if _, err := w.token(); err != nil || w.depth == depth {
			return err
		}
	}
}
