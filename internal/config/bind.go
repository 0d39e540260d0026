package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bind copies a decoded document into the configuration. go-toml could do it
// too, but would stop at the first value of a wrong type.
func (d *document) bind(tree map[string]any) {
	d.table("", tree, reflect.ValueOf(d.cfg).Elem())
}

// table binds the keys of a table to the fields of a struct, in the order of the
// struct: [[listener]] tables copy [listen] and [next_hop], which must be bound before
// them.
func (d *document) table(path string, tree map[string]any, fields reflect.Value) {
	known := keysOf(fields.Type(), path)
	for _, f := range fieldsOf(fields.Type(), path) {
		if value, ok := tree[f.key]; ok {
			d.value(child(path, f.key), value, fields.FieldByIndex(f.Index).Addr().Interface(), f.Tag)
		}
	}
	for key, value := range tree {
		if !slices.Contains(known, key) {
			hint, meant := doorHint(key, path, value)
			if hint == "" {
				hint, meant = suggest(key, path, known)
			}
			d.unknownTable = d.unknownTable || path == "" && isTable(value)
			d.fail(child(path, key), "unknown key", hint)
			// If the misspelled key is also missing, one error is enough.
			if meant != "" {
				d.failed[meant] = true
			}
		}
	}
}

// value binds a value, and checks it against the tag of its field. A value of a
// wrong type leaves the default in place.
func (d *document) value(path string, value, field any, tag reflect.StructTag) {
	switch field := field.(type) {
	case *string:
		if assign(d, path, value, field, wantString(path, value)) {
			d.noControl(path, *field)
			if allowed := tag.Get("oneof"); allowed != "" {
				d.oneOf(path, *field, strings.Split(allowed, ",")...)
			}
		}
	case *bool:
		assign(d, path, value, field, `true or false, without quotes`)
	case *int64:
		if assign(d, path, value, field, wholeNumber(path)) {
			d.within(path, *field, tag)
		}
	case *int:
		var n int64
		if assign(d, path, value, &n, wholeNumber(path)) {
			d.within(path, n, tag)
			*field = int(n)
		}
	case *Connections:
		var n int64
		if value == "auto" {
			*field = AutoConnections
		} else if assign(d, path, value, &n, `a whole number without quotes (0 is no limit), or "auto"`) {
			d.within(path, n, tag)
			*field = Connections(n)
		}
	case *float64:
		if whole, ok := value.(int64); ok {
			value = float64(whole)
		}
		assign(d, path, value, field, `a number, such as 1e-6, without quotes`)
	case *Size:
		d.bytes(path, value, field, tag)
	case *time.Duration:
		d.duration(path, value, field, tag)
	case *Addresses:
		d.addresses(path, value, field)
	case *[]string:
		d.strings(path, value, field)
	case *[]netip.Prefix:
		d.prefixes(path, value, field)
	case **NextHop:
		d.listenerHop(path, value, field)
	case *[]Listener:
		tables(d, path, value, field, ", once for each listener", d.emptyListener)
	case *[]List:
		tables(d, path, value, field, ", once for each list", DefaultList)
	case *[]RecipientPolicy:
		tables(d, path, value, field, "", DefaultRecipientPolicy)
	case *[]Door:
		n := 0
		tables(d, path, value, field, "", func() Door {
			door := doorKinds[path].empty
			door.Table, door.Index = path, n
			n++
			return door
		})
	default:
		v := reflect.ValueOf(field).Elem()
		if v.Kind() == reflect.String {
			s := v.String()
			d.value(path, value, &s, tag)
			v.SetString(s)
			return
		}
		sub, ok := value.(map[string]any) // the struct of a table
		if !ok {
			d.wrongType(path, value, "a table: a line ["+path+"] with its keys below")
			return
		}
		d.table(path, sub, v)
	}
}

// wholeNumber says what to write for a whole number. People try "off" for a
// limit, so that 0 is worth a mention.
func wholeNumber(path string) string {
	if isLimit(path) {
		return `a whole number, without quotes (0 is no limit)`
	}
	return `a whole number, without quotes or a unit`
}

// isLimit reports whether a key is a limit of clients, which 0 switches off.
func isLimit(path string) bool { return limitKey.MatchString(path) }

var limitKey = regexp.MustCompile(`(^|\.)(max_connections|(client|network|login)_\w*(connections|per_minute))$`)

// within checks a number against the range in its field's tag.
func (d *document) within(path string, v int64, tag reflect.StructTag) {
	low, high, ok := strings.Cut(tag.Get("range"), ",")
	least, _ := strconv.ParseInt(low, 10, 64)
	most, _ := strconv.ParseInt(high, 10, 64)
	if ok && (v < least || v > most) {
		d.fail(path, fmt.Sprintf("%d is out of range", v), "write "+low+" to "+high)
	}
}

func (d *document) wrongType(path string, value any, want string) {
	d.fail(path, "is "+kindOf(value), "write "+want)
}

// assign sets a field to a value of the same type.
func assign[T any](d *document, path string, value any, field *T, want string) bool {
	v, ok := value.(T)
	if !ok {
		d.wrongType(path, value, want)
		return false
	}
	*field = v
	return true
}

// noControl refuses control characters: "\b" in the path of a file is a backspace.
// The texts of [policy] have a stricter check.
func (d *document) noControl(path, s string) {
	if strings.HasPrefix(path, "policy.") && !strings.HasPrefix(s, schemeFile) {
		return
	}
	for _, r := range s {
		if isControl(r) {
			d.fail(path, fmt.Sprintf("contains the control character %q", r),
				`write each backslash twice, or use single quotes; separate directories with "/"`)
			return
		}
	}
}

// isControl reports whether r is a control character of ASCII.
func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// strings binds an array of strings, unless one of its elements is not a string.
func (d *document) strings(path string, value any, field *[]string) {
	want := `an array of strings, such as ["a", "b"]`
	if s, ok := value.(string); ok {
		want = fmt.Sprintf("an array of strings: [%q]", s)
	}
	var array []any
	if !assign(d, path, value, &array, want) {
		return
	}
	var out []string
	ok := true
	for i, v := range array {
		var s string
		ok = assign(d, element(path, i), v, &s, "a string in quotes") && ok
		d.noControl(element(path, i), s)
		out = append(out, s)
	}
	if ok {
		*field = out
	}
}

// addresses binds a string or an array of strings.
func (d *document) addresses(path string, value any, field *Addresses) {
	if s, ok := value.(string); ok {
		*field = Addresses{s}
		d.noControl(path, s)
	} else if _, ok := value.([]any); ok {
		d.strings(path, value, (*[]string)(field))
	} else {
		d.wrongType(path, value, "a string in quotes, or an array of them")
	}
}

// listenerHop binds the next hop of a [[listener]]: addresses, or a table. Keys that it
// does not set have the values of [next_hop].
func (d *document) listenerHop(path string, value any, field **NextHop) {
	n := d.cfg.NextHop
	n.Addr, n.TLSPins = slices.Clone(n.Addr), slices.Clone(n.TLSPins)
	switch value := value.(type) {
	case map[string]any:
		d.table(path, value, reflect.ValueOf(&n).Elem())
	case string, []any:
		d.addresses(path, value, &n.Addr)
	default:
		d.wrongType(path, value, `the address of a mail server in quotes, an array of addresses, or { addr = "…", … }`)
		return
	}
	*field = &n
}

func (d *document) prefixes(path string, value any, field *[]netip.Prefix) {
	var texts []string
	d.strings(path, value, &texts)
	*field = nil
	for i, s := range texts {
		p, what, hint := parsePrefix(s)
		if what != "" {
			d.fail(element(path, i), what, hint)
		}
		*field = append(*field, p)
	}
}

// emptyListener returns the values of an empty [[listener]] table.
func (d *document) emptyListener() Listener {
	l := Listener{Endpoint: d.cfg.Listen.Endpoint}
	l.Addr = nil
	return l
}

// tables appends the tables of an array to a field, over the values of an empty one.
func tables[T any](d *document, path string, value any, field *[]T, once string, empty func() T) {
	want := "[[" + path + "]] with two brackets" + once
	var array []any
	if !assign(d, path, value, &array, want) {
		return
	}
	for i, v := range array {
		var tree map[string]any
		if assign(d, element(path, i), v, &tree, want) {
			table := empty()
			d.table(element(path, i), tree, reflect.ValueOf(&table).Elem())
			*field = append(*field, table)
		}
	}
}

// isTable reports whether a decoded value is a table or an array of tables.
func isTable(value any) bool {
	if array, ok := value.([]any); ok && len(array) > 0 {
		value = array[0]
	}
	_, ok := value.(map[string]any)
	return ok
}

// noKey is the tag of a field that has no key.
const noKey = "-"

// field is a field of a table's struct, with its key in the table.
type field struct {
	reflect.StructField
	key string
}

// fieldsOf returns the fields that have keys in a table, in the order of the struct. The
// keys of an embedded struct belong to the same table, and so do those of one with the tag
// "prefix", with which they begin. The tag "only" names the tables that have a key, where others
// of the same struct lack it.
func fieldsOf(t reflect.Type, table string) (all []field) {
	for _, f := range reflect.VisibleFields(t) {
		keys, only := f.Tag.Get("toml"), f.Tag.Get("only")
		if f.Anonymous || keys == noKey || only != "" && !slices.Contains(strings.Split(only, ","), display(table)) {
			continue
		}
		if prefix, ok := f.Tag.Lookup("prefix"); ok {
			for _, sub := range fieldsOf(f.Type, table) {
				sub.Index = append(slices.Clone(f.Index), sub.Index...)
				all = append(all, field{sub.StructField, prefix + sub.key})
			}
			continue
		}
		for key := range strings.SplitSeq(keys, ",") { // the doors are one field
			all = append(all, field{f, key})
		}
	}
	return all
}

// keysOf returns the keys of a table, in the order of the struct.
func keysOf(t reflect.Type, table string) []string {
	var keys []string
	for _, f := range fieldsOf(t, table) {
		keys = append(keys, f.key)
	}
	return keys
}

// kindOf names a decoded value's type in TOML's words.
func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "a whole number"
	case float64:
		return "a fraction"
	case []any:
		return "an array"
	case map[string]any:
		return "a table"
	default:
		return "a date or time"
	}
}
