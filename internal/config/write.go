package config

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
