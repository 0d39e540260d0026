package config

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"spamgate/internal/text"
)

// shown returns what "config show" writes about a file.
func shown(t *testing.T, path string) string {
	t.Helper()
	_, tables, err := Effective(path)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteTOML(&out, tables, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// sameAgain wants the gate to read the effective configuration of a file as it reads
// the file.
func sameAgain(t *testing.T, path string) {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Parse(path, src)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := want.Tables()
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := WriteTOML(&again, tables, nil); err != nil {
		t.Fatal(err)
	}
	got, err := Parse(path, again.Bytes())
	if err != nil {
		t.Fatalf("%v\n%s", err, again.String())
	}
	for i := range want.Lists {
		want.Lists[i].URL, want.Lists[i].SignatureURL = text.ShownURL(want.Lists[i].URL), text.ShownURL(want.Lists[i].SignatureURL)
	}
	got.Warnings, want.Warnings = nil, nil
	got.Source, want.Source = nil, nil
	if !equalConfigs(*got, *want) {
		t.Errorf("%s\ngot  %+v\nwant %+v\n%s", path, *got, *want, again.String())
	}
}

func TestEffectiveLoadsAgain(t *testing.T) {
	files, err := filepath.Glob("testdata/good/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no configurations: %v", err)
	}
	examples, err := filepath.Glob(filepath.Join(root, "docs/examples/*.toml"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range append(append(files, examples...), filepath.Join(root, "config.toml")) {
		t.Run(filepath.Base(file), func(t *testing.T) { sameAgain(t, file) })
	}
}

func TestEffectiveNotes(t *testing.T) {
	text := shown(t, write(t, `hostname = "gate.example"
[listen]
max_hops = 7
[[list]]
name = "own"
path = "/lists/own.txt"
[[list]]
name = "secret"
url = "https://lists.example/blocked.txt?token=abc"
`))
	for _, want := range []string{
		"hostname = \"gate.example\"  # line 1\n",
		"\n[listen]\naddr = \"127.0.0.1:2525\"\n",
		"\nmax_hops = 7  # line 3\n",
		"\npath = \"/lists/own.txt\"  # line 6\n",
		"\nurl = \"https://lists.example/blocked.txt?...\"  # line 9; \"...\" hides what may be a secret\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "abc") || strings.Count(text, "refresh") != 1 {
		t.Errorf("shows a token, or refresh of a list that is a file:\n%s", text)
	}
}

// TestEffectiveName wants the note of a name that the file does not set to say so.
func TestEffectiveName(t *testing.T) {
	for _, hostname := range []string{"", "hostname = \"\"\n"} {
		if text := shown(t, write(t, hostname+"[[list]]\nname = 'a'\npath = 'a'\n")); !strings.Contains(text, "# the machine's own name\n") {
			t.Errorf("%q: %s", hostname, text)
		}
	}
}

// TestEffectiveBytes wants an error of a path that TOML cannot hold.
func TestEffectiveBytes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a\xffb")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Skip(err) // a file system of UTF-8 names
	}
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte("[[list]]\nname = 'a'\npath = 'a'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, tables, err := Effective(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteTOML(new(bytes.Buffer), tables, nil); err == nil || !strings.Contains(err.Error(), `a\xffb`) {
		t.Errorf("got %v", err)
	}
}

// TestDefaultsLoad reads the defaults as a configuration, with a list's name and path.
func TestDefaultsLoad(t *testing.T) {
	var out bytes.Buffer
	for _, table := range Defaults() {
		if table.Optional() {
			continue
		}
		for i, k := range table.Keys {
			if table.Name == "list" && (k.Name == "name" || k.Name == "path") {
				table.Keys[i].Value = "a"
			}
		}
		if err := WriteTOML(&out, []Table{table}, nil); err != nil {
			t.Fatal(err)
		}
	}
	text := out.String()
	got, err := parse("config.toml", []byte(text), false)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want := Default()
	want.Listeners = []Listener{{Name: "listen", Endpoint: want.Listen.Endpoint}}
	list := DefaultList()
	list.Name, list.Path = "a", "a"
	want.Lists = []List{list}
	got.File, got.Warnings = "", nil
	if !equalConfigs(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
}

// equalConfigs compares configurations, and takes an empty array for none.
func equalConfigs(a, b Config) bool {
	return reflect.DeepEqual(withoutEmpty(reflect.ValueOf(&a).Elem()), withoutEmpty(reflect.ValueOf(&b).Elem()))
}

// withoutEmpty sets each empty slice in a value to nil.
func withoutEmpty(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[netip.Prefix]() {
			for _, field := range v.Fields() {
				withoutEmpty(field)
			}
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.SetZero()
		}
		for i := range v.Len() {
			withoutEmpty(v.Index(i))
		}
	}
	return v.Interface()
}

// FuzzEffective checks that what "config show" prints is read as the file is.
func FuzzEffective(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.toml", "testdata/bad/*.toml", filepath.Join(root, "docs/examples/*.toml")} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if _, err := Parse("/dir/f.toml", src); err == nil {
			path := filepath.Join(t.TempDir(), "f.toml")
			if err := os.WriteFile(path, src, 0o600); err != nil {
				t.Fatal(err)
			}
			sameAgain(t, path)
		}
	})
}
