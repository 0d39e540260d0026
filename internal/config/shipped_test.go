package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

const shipped = "../../config.toml"

// defaultLine is a key that the shipped configuration shows commented out.
var defaultLine = regexp.MustCompile(`(?m)^# ([a-z_]+ = .*)$`)

func readShipped(t *testing.T) []byte {
	t.Helper()
	src, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestShippedIsDefault reads the shipped configuration as it is, and with
// every commented key in force: both must be the defaults.
func TestShippedIsDefault(t *testing.T) {
	src := readShipped(t)
	for name, text := range map[string][]byte{
		"as it is":    src,
		"uncommented": defaultLine.ReplaceAll(src, []byte("$1")),
	} {
		got, err := parse("config.toml", text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lists := got.Lists
		want := Default()
		got.File, got.Lists = "", nil
		got.Policy.ExemptClients = want.Policy.ExemptClients // [] and absent are alike
		got.Policy.RecipientDomains = want.Policy.RecipientDomains
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, *got, want)
		}
		always, allowed, blocked := DefaultList(), DefaultList(), DefaultList()
		always.Name, always.Path, always.Type, always.Action, always.Override = "always-allow", "lists/always-allow.txt", "allow", "", true
		allowed.Name, allowed.Path, allowed.Type, allowed.Action = "allowed", "lists/allowed.txt", "allow", ""
		blocked.Name, blocked.Path = "blocked", "lists/blocked.txt"
		if want := []List{always, allowed, blocked}; !reflect.DeepEqual(lists, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, lists, want)
		}
	}
}

// TestShippedHasAllKeys: a key without a line in config.toml is a key that
// nobody finds.
func TestShippedHasAllKeys(t *testing.T) {
	var tree map[string]any
	if err := toml.Unmarshal(defaultLine.ReplaceAll(readShipped(t), []byte("$1")), &tree); err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[Config]().Fields() {
		name := field.Tag.Get("toml")
		value, ok := tree[name]
		if !ok && name != noKey {
			t.Errorf("%s is not in config.toml", name)
		}
		tables, _ := value.([]any)
		if field.Type.Kind() == reflect.Struct {
			tables = []any{value}
		} else if field.Type != reflect.TypeFor[[]List]() {
			continue
		}
		table := field.Type
		if table.Kind() == reflect.Slice {
			table = table.Elem()
		}
		for _, key := range keysOf(table) {
			if !hasKey(tables, key) {
				t.Errorf("%s.%s is not in config.toml", name, key)
			}
		}
	}
}

func hasKey(tables []any, key string) bool {
	for _, t := range tables {
		if _, ok := t.(map[string]any)[key]; ok {
			return true
		}
	}
	return false
}

// TestShippedFiles: what the shipped configuration names is there.
func TestShippedFiles(t *testing.T) {
	cfg, err := Load(shipped)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range cfg.Lists {
		if !filepath.IsAbs(l.Path) {
			t.Errorf("list %s: path %s is not absolute", l.Name, l.Path)
		}
		if _, err := os.Stat(l.Path); err != nil {
			t.Errorf("list %s: %v", l.Name, err)
		}
	}
}
