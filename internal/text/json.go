package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// DecodeJSON decodes the one JSON value of a request. A field that into does not have is an error, and
// so is a key that an object has twice: encoding/json takes the last of them, and another reader of the
// same text the first (RFC 8259, section 4). The error is io.EOF if there is nothing.
func DecodeJSON(r io.Reader, into any) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON object")
	}
	return keysOnce(json.NewDecoder(bytes.NewReader(content)))
}

// keysOnce returns an error that names a key that an object has twice. Keys are equal as they are to
// encoding/json, which ignores the case.
func keysOnce(d *json.Decoder) error {
	var open []map[string]bool // the keys of the objects around the next token; nil: it is in an array
	atKey := false
	for {
		token, err := d.Token()
		if err != nil {
			return nil // the end: Decode has read all of it
		}
		switch delim, _ := token.(json.Delim); {
		case delim == '{':
			open = append(open, map[string]bool{})
		case delim == '[':
			open = append(open, nil)
		case delim != 0:
			open = open[:len(open)-1]
		case atKey:
			key, keys := token.(string), open[len(open)-1]
			folded := strings.ToLower(strings.ToUpper(key))
			if keys[folded] {
				return fmt.Errorf("the key %q stands there twice", key)
			}
			keys[folded] = true
			atKey = false
			continue
		}
		atKey = len(open) > 0 && open[len(open)-1] != nil
	}
}
