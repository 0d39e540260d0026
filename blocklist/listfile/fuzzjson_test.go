package listfile

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
)

// FuzzJSONPath holds the reading of JSON along a path against a plain walk through the
// decoded text.
func FuzzJSONPath(f *testing.F) {
	f.Add(`["a.example.com", 1, {"x": 2}]`, ".")
	f.Add(`{"data": [{"domain": "a.example.com"}, {"domain": ["b.example.com"]}, {"x": 1}]}`, "data.domain")
	f.Add(`{"7": [{"url": "https://a.example.com/"}], "8": [{"url": "https://b.example.com/x"}]}`, "*.url")
	f.Add(`{"a.example.com": {"x": 1e999}, "b.example.com": [[]]}`, ".")
	f.Add(`{"domain": "a.example.com"} {"domain": "b.example.com"} {"x": {"domain": "c.example.com"}}`, "domain")
	f.Add(`{"a": {"b": {"c.example.com": null}}, "b": {"b": []}}`, "*.*")
	f.Add(`[[["a.example.com"]], []]`, "x")
	f.Fuzz(func(t *testing.T, text, column string) {
		if strings.TrimSpace(column) == "" || len(text) > MaxLine || strings.Contains(text, "\x00") {
			return
		}
		// Written again, no object has a name twice, and names are sorted.
		var again strings.Builder
		var want []string
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		path := strings.Split(strings.TrimSpace(column), ".")
		if strings.TrimSpace(column) == "." {
			path = nil
		}
		for n := 0; d.More(); n++ {
			var value any
			if d.Decode(&value) != nil || n > 0 && again.String()[0] != '{' {
				return
			}
			switch value.(type) {
			case []any:
				if n > 0 {
					return
				}
			case map[string]any:
			default:
				return
			}
			line, err := json.Marshal(value)
			if err != nil || strings.Contains(string(line), `\u0000`) {
				return
			}
			again.Write(line)
			again.WriteByte('\n')
			want = append(want, stringsAt(value, path)...)
		}
		o := Options{Format: JSON, Column: column, Now: sampleNow, AllowPublicSuffix: true}
		got := readOnce(strings.NewReader(again.String()), o)
		if errors.Is(got.err, ErrNotList) {
			return
		}
		var keys, wanted []string
		for _, e := range got.entries {
			keys = append(keys, AsEntry(e))
		}
		for _, s := range want {
			out := newOutput(o, func(e Entry) error { wanted = append(wanted, AsEntry(e)); return nil }, nil)
			out.uncommented(1, s)
		}
		if !slices.Equal(keys, wanted) {
			t.Errorf("%s at %q: %q, want %q (%v)", again.String(), column, keys, wanted, got.err)
		}
	})
}

// stringsAt returns the strings at a path of a value.
func stringsAt(value any, path []string) (found []string) {
	switch v := value.(type) {
	case string:
		if len(path) == 0 {
			return []string{v}
		}
	case []any:
		for _, element := range v {
			if s, ok := element.(string); ok && len(path) == 0 {
				found = append(found, s)
			} else if len(path) > 0 {
				found = append(found, stringsAt(element, path)...)
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			switch {
			case len(path) == 0:
				found = append(found, name)
			case path[0] == name, path[0] == "*":
				found = append(found, stringsAt(v[name], path[1:])...)
			}
		}
	}
	return found
}
