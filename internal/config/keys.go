package config

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"spamgate/internal/text"
)

// Table is a table of a configuration with its keys, in the order of the struct.
type Table struct {
	Name  string // "listen"; empty for the keys before the first table
	Array bool   // [[list]], not [listen]
	Keys  []Key
}

// Header returns the table's line in a file: "[listen]" or "[[list]]".
func (t Table) Header() string {
	if t.Array {
		return "[[" + t.Name + "]]"
	}
	return "[" + t.Name + "]"
}

// Key is a key with a value.
type Key struct {
	Name  string
	Value any    // string, bool, int64, float64, []string or []Key (a table), as a file has it
	Type  string // what the key accepts: "whole number, 1 to 1000"
	Note  string // where the value comes from; may be empty
}

// Defaults returns all keys with their defaults. [[listener]] has only those that
// [listen] lacks. Its name, and name and path of a list, are empty.
func Defaults() []Table {
	c := Default()
	return c.withEmptyArrays()
}

// withEmptyArrays returns all tables, of arrays of tables an empty one.
func (c *Config) withEmptyArrays() []Table {
	var top Table
	var tables []Table
	for _, f := range fieldsOf(reflect.TypeFor[Config](), "") {
		name, v := f.key, reflect.ValueOf(*c).FieldByIndex(f.Index)
		if empty, ok := emptyTable(f); ok {
			keys := keysIn(empty, name)
			if name == "listener" {
				shared := keysOf(reflect.TypeFor[Endpoint](), name)
				keys = slices.DeleteFunc(keys, func(k Key) bool { return slices.Contains(shared, k.Name) })
			}
			tables = append(tables, Table{name, true, keys})
			continue
		}
		if f.Type.Kind() != reflect.Struct {
			top.Keys = append(top.Keys, Key{Name: name, Value: written(v), Type: accepted(f.StructField)})
			continue
		}
		tables = append(tables, Table{name, false, keysIn(v, name)})
		for _, sub := range fieldsOf(f.Type, name) {
			if sub.Type.Kind() == reflect.Struct {
				path := child(name, sub.key)
				tables = append(tables, Table{path, false, keysIn(v.FieldByIndex(sub.Index), path)})
			}
		}
	}
	return append([]Table{top}, tables...)
}

// emptyTable returns an empty table of a field with an array of tables.
func emptyTable(f field) (table reflect.Value, ok bool) {
	switch f.Type {
	case reflect.TypeFor[[]List]():
		return reflect.ValueOf(DefaultList()), true
	case reflect.TypeFor[[]Listener]():
		return reflect.ValueOf(Listener{}), true
	case reflect.TypeFor[[]Door]():
		return reflect.ValueOf(doorKinds[f.key].empty), true
	case reflect.TypeFor[[]RecipientPolicy]():
		return reflect.ValueOf(DefaultRecipientPolicy()), true
	}
	return table, false
}

// Optional reports whether the table is of what a configuration need not have: a listener or
// a door, which has no default address, or a policy for some recipients.
func (t Table) Optional() bool { return t.Array && t.Name != "list" }

// keysIn returns the keys of a table's struct, without the tables in it.
func keysIn(table reflect.Value, name string) []Key {
	var keys []Key
	for _, f := range fieldsOf(table.Type(), name) {
		if f.Type.Kind() != reflect.Struct {
			v := table.FieldByIndex(f.Index)
			keys = append(keys, Key{Name: f.key, Value: written(v), Type: accepted(f.StructField)})
		}
	}
	return keys
}

// written returns a value as a file has it.
func written(v reflect.Value) any {
	switch v := v.Interface().(type) {
	case Connections:
		if v == AutoConnections {
			return "auto"
		}
	case Size:
		return v.String()
	case time.Duration:
		return text.Duration(v)
	case Addresses:
		if len(v) == 1 {
			return v[0]
		}
	case *NextHop:
		return []Key{} // what the file sets is in its text alone
	case []netip.Prefix:
		texts := []string{}
		for _, p := range v {
			if p.IsSingleIP() {
				texts = append(texts, p.Addr().String())
			} else {
				texts = append(texts, p.String())
			}
		}
		return texts
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int64:
		return v.Int()
	case reflect.Float64:
		return v.Float()
	}
	return append([]string{}, v.Convert(reflect.TypeFor[[]string]()).Interface().([]string)...)
}

// accepted says what a key accepts, from its type and tags.
func accepted(f reflect.StructField) string {
	low, high, ranged := strings.Cut(f.Tag.Get("range"), ",")
	within := ""
	if ranged {
		within = fmt.Sprintf(", %s to %s", low, high)
	}
	switch f.Type {
	case reflect.TypeFor[Connections]():
		return "whole number" + within + `, or "auto"`
	case reflect.TypeFor[Size]():
		return fmt.Sprintf("size, %q to %q", low, high)
	case reflect.TypeFor[time.Duration]():
		return fmt.Sprintf("duration, %q to %q", low, high)
	case reflect.TypeFor[Addresses]():
		return "string, or array of strings"
	case reflect.TypeFor[[]netip.Prefix]():
		return "array of addresses and networks"
	case reflect.TypeFor[*NextHop]():
		return "string, array of strings, or table with keys of [next_hop]"
	}
	switch f.Type.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "whole number" + within
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "array of strings"
	}
	if values, ok := f.Tag.Lookup("oneof"); ok {
		return choice(strings.Split(values, ","))
	}
	return "string"
}

// WriteTOML writes tables as a configuration file. Before each key it writes as
// comments the lines that explain returns, after an empty line. explain may be nil. The
// error is about a path that a configuration cannot hold.
func WriteTOML(out *bytes.Buffer, tables []Table, explain func(table, key string) []string) error {
	for i, t := range tables {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if t.Name != "" {
			fmt.Fprintln(out, t.Header())
		}
		for j, k := range t.Keys {
			if explain != nil {
				writeComment(out, explain(t.Name, k.Name), j > 0)
			}
			value, err := k.TOML()
			if err != nil {
				return fmt.Errorf("%s: %s: %w", t.Header(), k.Name, err)
			}
			if k.Note != "" {
				value += "  # " + k.Note
			}
			fmt.Fprintf(out, "%s = %s\n", k.Name, value)
		}
	}
	return nil
}

// writeComment writes lines as comments, if wanted after an empty line.
func writeComment(w io.Writer, lines []string, apart bool) {
	if apart && len(lines) > 0 {
		fmt.Fprintln(w)
	}
	for _, line := range lines {
		fmt.Fprintln(w, strings.TrimRight("# "+line, " "))
	}
}

// TOML returns the value as a file has it.
func (k Key) TOML() (string, error) {
	switch v := k.Value.(type) {
	case string:
		return quoted(v)
	case float64:
		// "1e-06" is valid, but nobody writes it so.
		return strings.Replace(strconv.FormatFloat(v, 'g', -1, 64), "e-0", "e-", 1), nil
	case []Key:
		texts := make([]string, len(v))
		for i, k := range v {
			value, err := k.TOML()
			if err != nil {
				return "", err
			}
			texts[i] = k.Name + " = " + value
		}
		if len(v) == 0 {
			return "{}", nil
		}
		return "{ " + strings.Join(texts, ", ") + " }", nil
	case []string:
		texts := make([]string, len(v))
		for i, s := range v {
			var err error
			if texts[i], err = quoted(s); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(texts, ", ") + "]", nil
	}
	return fmt.Sprint(k.Value), nil
}

// quoted returns a TOML string. A path may have bytes that no configuration can hold.
func quoted(s string) (string, error) {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, isControl) {
		return "", fmt.Errorf("%q cannot be written in a configuration, which holds UTF-8 without control characters", s)
	}
	return strconv.Quote(s), nil
}

// Values returns tables as they are decoded from a file: a map for each table, an
// array of them for tables such as [[list]].
func Values(tables []Table) map[string]any {
	all := map[string]any{}
	for _, t := range tables {
		values := map[string]any{}
		if t.Name == "" {
			values = all
		}
		for _, k := range t.Keys {
			if inline, ok := k.Value.([]Key); ok {
				k.Value = Values([]Table{{Keys: inline}})
			}
			values[k.Name] = k.Value
		}
		switch {
		case t.Name == "":
		case t.Array:
			array, _ := all[t.Name].([]any)
			all[t.Name] = append(array, values)
		default:
			outer, name := all, t.Name
			if table, inner, ok := strings.Cut(t.Name, "."); ok {
				outer, name = all[table].(map[string]any), inner
			}
			outer[name] = values
		}
	}
	return all
}
