package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestBad reads each broken configuration of testdata/bad, and compares the error with
// the .want file, one fault per line.
func TestBad(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no broken configurations: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(strings.TrimSuffix(file, ".toml") + ".want")
			if err != nil {
				t.Fatal(err)
			}
			cfg, err := parse(filepath.Base(file), src, false)
			if err == nil {
				t.Fatalf("accepted: %+v", cfg)
			}
			if got := err.Error() + "\n"; got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadNearlyEmpty(t *testing.T) {
	path := write(t, "[[list]]\nname = 'blocked'\npath = 'lists/*.txt'\n")
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(path)
	want := Default()
	want.File = path
	want.Hostname, _ = machineName()
	want.State.Dir, want.Admin.Socket = filepath.Join(dir, "state"), filepath.Join(dir, "state/admin.sock")
	want.NextHop.Addr = Addresses{"maildir:" + filepath.Join(dir, "mail")}
	want.Listeners = []Listener{{Name: "listen", Endpoint: want.Listen.Endpoint}}
	list := DefaultList()
	list.Name, list.Path = "blocked", filepath.Join(dir, "lists/*.txt")
	want.Lists = []List{list}
	want.Source = got.Source
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, want)
	}
}

// TestDefaultSocket checks that the admin socket is in the state directory, unless the
// file sets it.
func TestDefaultSocket(t *testing.T) {
	for admin, want := range map[string]string{
		"":                                     "/var/lib/spamgate/admin.sock",
		"[admin]\nsocket_mode = '0660'\n":      "/var/lib/spamgate/admin.sock",
		"[admin]\nsocket = '/run/gate.sock'\n": "/run/gate.sock",
		"[admin]\nsocket = ''\n":               "",
	} {
		got, err := Load(write(t, "[state]\ndir = '/var/lib/spamgate'\n"+admin+"[[list]]\nname = 'blocked'\npath = 'lists/*.txt'\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got.Admin.Socket != want {
			t.Errorf("%q: the socket is %q, want %q", admin, got.Admin.Socket, want)
		}
	}
}

// TestByteOrderMark checks that a byte order mark, which some editors write, is ignored.
func TestByteOrderMark(t *testing.T) {
	got, err := Load(write(t, byteOrderMark+"hostname = 'gate.example'\n[[list]]\nname = 'blocked'\npath = 'lists/*.txt'\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got.Hostname != "gate.example" {
		t.Errorf("got %q", got.Hostname)
	}
}

func TestLoadMissing(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "config.toml"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want fs.ErrNotExist", err)
	}
	if !strings.Contains(err.Error(), "--config") {
		t.Errorf("%v: does not say what to do", err)
	}
}

func TestLoadTooLarge(t *testing.T) {
	_, err := Load(write(t, strings.Repeat("#\n", maxFileSize)))
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
}

func TestLoadDirectory(t *testing.T) {
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a directory was accepted")
	}
}

// TestErrorFields checks the fields of an Error.
func TestErrorFields(t *testing.T) {
	_, err := parse("f.toml", []byte("[listen]\n  adr = ':25'\n[[list]]\nname = 'a'\npath = 'a.txt'\n"), false)
	var fault *Error
	if !errors.As(err, &fault) {
		t.Fatalf("got %T", err)
	}
	want := Error{File: "f.toml", Line: 2, Column: 3, Key: "listen.adr", What: "unknown key", Hint: `did you mean "addr"?`}
	if *fault != want {
		t.Errorf("got %+v, want %+v", *fault, want)
	}
}
