package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"spamgate/internal/defaultconfig"
)

// root is the clone's directory.
const root = "../.."

var (
	// defaultLine is a key that is commented out in the shipped configuration.
	defaultLine = regexp.MustCompile(`(?m)^# ([a-z_]+ = .*)$`)

	// exampleLine is a line of an example in it.
	exampleLine = regexp.MustCompile(`(?m)^#     (\[\[.*\]\]|[a-z_]+ = .*)$`)
)

// TestShippedIsDefault reads the shipped configuration as it is, and with all keys
// uncommented: both must be the defaults.
func TestShippedIsDefault(t *testing.T) {
	for name, text := range map[string][]byte{
		"as it is":    []byte(defaultconfig.Config()),
		"uncommented": defaultLine.ReplaceAll(defaultconfig.Clone(t, root), []byte("$1")),
	} {
		got, err := parse("config.toml", text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lists := got.Lists
		want := Default()
		want.Listeners = []Listener{{Name: "listen", Endpoint: want.Listen.Endpoint}}
		got.File, got.Lists = "", nil
		got.Warnings = nil // of keys without an effect, which are shown all the same
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

// TestShippedHasAllKeys checks that config.toml has every key.
func TestShippedHasAllKeys(t *testing.T) {
	var tree map[string]any
	src := exampleLine.ReplaceAll(defaultLine.ReplaceAll(defaultconfig.Clone(t, root), []byte("$1")), []byte("$1"))
	if err := toml.Unmarshal(src, &tree); err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[Config]().Fields() {
		name := field.Tag.Get("toml")
		if name == noKey {
			continue
		}
		value, ok := tree[name]
		if !ok {
			t.Errorf("%s is not in config.toml", name)
		}
		var keys []string
		tables, _ := value.([]any)
		switch {
		case field.Type == reflect.TypeFor[[]Listener]():
			keys = []string{"name"} // the others are those of [listen]
		case field.Type.Kind() == reflect.Slice:
			keys = keysOf(field.Type.Elem())
		case field.Type.Kind() == reflect.Struct:
			keys, tables = keysOf(field.Type), []any{value}
		}
		for _, key := range keys {
			if !hasKey(tables, key) {
				t.Errorf("%s.%s is not in config.toml", name, key)
			}
		}
	}
}

// TestShippedExamples uncomments the examples, with an SMTP server as the next hop.
func TestShippedExamples(t *testing.T) {
	src := exampleLine.ReplaceAllString(string(defaultconfig.Clone(t, root)), "$1")
	cfg, err := parse("config.toml", []byte(strings.Replace(src, `"maildir:mail"`, `"smtp://127.0.0.1:10025"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range cfg.Listeners {
		got = append(got, strings.Join([]string{l.Name, strings.Join(l.Addr, " "), l.TLS, l.Auth}, ", "))
	}
	want := []string{"listen, 127.0.0.1:2525, none, none", "submissions, :465, implicit, pass", "submission, :587, required, pass"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
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

// TestShippedFiles checks that the files exist that the shipped configuration names.
func TestShippedFiles(t *testing.T) {
	defaultconfig.Clone(t, root)
	cfg, err := Load(filepath.Join(root, "config.toml"))
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
