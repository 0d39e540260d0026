package config_test

import (
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"spamgate/internal/config"
	"spamgate/internal/config/reference"
)

var update = flag.Bool("update", false, "write docs/config.md")

// source returns reference.toml.
func source(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("reference/reference.toml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const page = "../../docs/config.md"

// TestReferenceKeys wants reference.toml to have every key of the gate with its default, and
// nothing else.
func TestReferenceKeys(t *testing.T) {
	var got map[string]any
	if err := toml.Unmarshal([]byte(source(t)), &got); err != nil {
		t.Fatal(err)
	}
	want := config.Values(config.Defaults())
	for name, table := range want {
		differ(t, name, got[name], table)
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("reference.toml has %s, which the gate has not", name)
		}
	}
}

// differ reports the differences between two decoded values.
func differ(t *testing.T, path string, got, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		table, _ := got.(map[string]any)
		for key, value := range want {
			if _, ok := table[key]; !ok {
				t.Errorf("reference.toml lacks %s.%s", path, key)
				continue
			}
			differ(t, path+"."+key, table[key], value)
		}
		for key := range table {
			if _, ok := want[key]; !ok {
				t.Errorf("reference.toml has %s.%s, which the gate has not", path, key)
			}
		}
	case []any:
		if array, _ := got.([]any); len(array) == len(want) {
			for i := range want {
				differ(t, path, array[i], want[i])
			}
		} else {
			t.Errorf("reference.toml has %d %s, want %d", len(array), path, len(want))
		}
	default:
		if array, ok := got.([]any); ok {
			texts := []string{}
			for _, v := range array {
				texts = append(texts, v.(string))
			}
			got = texts
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %v in reference.toml, and its default %v", path, got, want)
		}
	}
}

// TestReferenceTables wants each key to be explained once.
func TestReferenceTables(t *testing.T) {
	explained := map[string]int{}
	for _, table := range reference.Tables() {
		if table.Name != "" && len(table.About) == 0 {
			t.Errorf("nothing is said about %s", table.Header())
		}
		for _, s := range table.Sections {
			for _, e := range s.Entries {
				for _, k := range e.Keys {
					explained[table.Name+"."+k.Name]++
				}
				if len(e.Text) == 0 || len(e.Keys) == 0 {
					t.Errorf("%s: %+v is not explained, or explains nothing", table.Header(), e)
				}
			}
		}
	}
	for _, table := range config.Defaults() {
		for _, k := range table.Keys {
			if n := explained[table.Name+"."+k.Name]; n != 1 {
				t.Errorf("%s %s is explained %d times", table.Header(), k.Name, n)
			}
		}
	}
	for line := range strings.Lines(source(t)) {
		if n := utf8.RuneCountInString(line); n > 87 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestReferencePage wants docs/config.md to be what the reference says. With -update it writes it.
func TestReferencePage(t *testing.T) {
	if *update {
		if err := os.WriteFile(page, []byte(markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != markdown() {
		t.Errorf("docs/config.md is not what reference.toml says (%v); go test ./internal/config -update writes it", err)
	}
}
