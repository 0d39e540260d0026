package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

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
	var top Table
	var tables []Table
	c := reflect.ValueOf(Default())
	for _, f := range fieldsOf(c.Type()) {
		name, v := f.Tag.Get("toml"), c.FieldByIndex(f.Index)
		switch {
		case f.Type == reflect.TypeFor[[]List]():
			tables = append(tables, Table{name, true, keysIn(reflect.ValueOf(DefaultList()))})
		case f.Type == reflect.TypeFor[[]Listener]():
			tables = append(tables, Table{name, true, ownKeys(Listener{})})
		case f.Type == reflect.TypeFor[[]PolicyService]():
			tables = append(tables, Table{name, true, keysIn(reflect.ValueOf(DefaultPolicyService()))})
		case f.Type == reflect.TypeFor[[]Milter]():
			tables = append(tables, Table{name, true, keysIn(reflect.ValueOf(DefaultMilter()))})
		case f.Type == reflect.TypeFor[[]DNSServer]():
			tables = append(tables, Table{name, true, keysIn(reflect.ValueOf(DefaultDNSServer()))})
		case f.Type == reflect.TypeFor[[]RecipientPolicy]():
			tables = append(tables, Table{name, true, keysIn(reflect.ValueOf(DefaultRecipientPolicy()))})
		case f.Type.Kind() == reflect.Struct:
			tables = append(tables, Table{name, false, keysIn(v)})
			for _, sub := range tablesOf(f.Type) {
				tables = append(tables, Table{name + "." + sub.Tag.Get("toml"), false, keysIn(v.FieldByIndex(sub.Index))})
			}
		default:
			top.Keys = append(top.Keys, key(f, v))
		}
	}
	return append([]Table{top}, tables...)
}

// Optional reports whether the table is of what a configuration need not have: a listener or
// a door, which has no default address, or a policy for some recipients.
func (t Table) Optional() bool { return t.Array && t.Name != "list" }

// ownKeys returns the keys of a listener that its Endpoint lacks.
func ownKeys(l Listener) []Key {
	shared := map[string]bool{}
	for _, name := range keysOf(reflect.TypeFor[Endpoint]()) {
		shared[name] = true
	}
	var own []Key
	for _, k := range keysIn(reflect.ValueOf(l)) {
		if !shared[k.Name] {
			own = append(own, k)
		}
	}
	return own
}

// keysIn returns the keys of a table's struct, without the tables in it.
func keysIn(table reflect.Value) []Key {
	var keys []Key
	for _, f := range fieldsOf(table.Type()) {
		if f.Type.Kind() != reflect.Struct {
			keys = append(keys, key(f, table.FieldByIndex(f.Index)))
		}
	}
	return keys
}

// tablesOf returns the tables in a table, such as [fleet.server].
func tablesOf(table reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(fieldsOf(table), func(f reflect.StructField) bool { return f.Type.Kind() != reflect.Struct })
}

func key(f reflect.StructField, v reflect.Value) Key {
	return Key{Name: f.Tag.Get("toml"), Value: written(v), Type: accepted(f)}
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
	case reflect.Int64:
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
	case reflect.Int64:
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
