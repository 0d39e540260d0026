package state

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// newerForms makes a file look as another version of the program might have written it.
var newerForms = map[string]func(t testing.TB, text []byte) []byte{
	// The file's own form with a higher version, as far as it has one.
	"version": func(t testing.TB, text []byte) []byte {
		switch {
		case bytes.HasPrefix(text, []byte("spamseg\n")), bytes.HasPrefix(text, []byte("SPAMBITS")):
			text = bytes.Clone(text)
			text[8]++
			return text
		case bytes.HasPrefix(text, []byte("spamgate ")):
			return bytes.Replace(text, []byte(" 1\n"), []byte(" 2\n"), 1)
		}
		var old map[string]any
		if json.Unmarshal(text, &old) != nil {
			return append([]byte("spamgate state 2\n"), text...)
		}
		newer, err := json.Marshal(map[string]any{"version": 2, "state": old})
		if err != nil {
			t.Fatal(err)
		}
		return newer
	},
	// Another form altogether.
	"form": func(testing.TB, []byte) []byte {
		b := make([]byte, 200)
		rand.Read(b)
		return append([]byte("\x00NEWER\n"), b...)
	},
}

// TestNewerState starts a gate, and its commands, over state that a newer version has written:
// all kinds of files together, and each alone. It serves the lists as their files are, keeps what
// it does not understand, and the start after that finds nothing to say.
func TestNewerState(t *testing.T) {
	t.Parallel()
	const all = "all"
	kinds := []string{"current.seg", "pinned", all}
	if harness.IfFull(0, 1) == 1 {
		kinds = append(kinds, "lists.key", "key", "current.bits", "current.json", "meta.json", "0.zst", "hits", "served", "accepted")
	}
	first := newerSetup().Dir(t)
	writeNewerState(t, first)
	for form, change := range newerForms {
		for _, kind := range kinds {
			t.Run(form+" of "+kind, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(first)); err != nil {
					t.Fatal(err)
				}
				protect(t, dir)
				changed := 0
				eachFile(t, filepath.Join(dir, "state"), func(path string) {
					if name := filepath.Base(path); name == kind || kind == all && name != "audit.log" {
						text, err := os.ReadFile(path)
						if err != nil {
							t.Fatal(err)
						}
						harness.WriteFile(t, path, string(change(t, text)))
						changed++
					}
				})
				if kind == all { // and what an older version has no name for
					harness.WriteFile(t, filepath.Join(dir, "state", "decisions.db"), "SQLite format 3\x00")
				}
				if changed == 0 && kind != "accepted" {
					t.Fatalf("the state has no %s", kind)
				}
				protect(t, dir)
				startOverNewer(t, dir, kind)
			})
		}
	}
}

func newerSetup() harness.Setup {
	return harness.Setup{
		Keys:  map[string]string{"log": "addresses = \"hash\""},
		Lists: harness.BlockedLists + "[[list]]\nname = \"frozen\"\npath = \"frozen.txt\"\n",
		Files: map[string]string{
			"blocked.txt": harness.NumberedList(33000), // long enough for bits of its own
			"frozen.txt":  "one.example\ntwo.example\n",
		},
	}
}

// writeNewerState has a gate write all of its state into a directory.
func writeNewerState(t *testing.T, dir string) {
	t.Helper()
	g := harness.Serve(t, dir)
	g.Lists(t, 0, "pin", "frozen")
	harness.WaitVerdict(t, g.Addr, "x@w7.example", "550") // for the hits
	g.Lists(t, 0, "add", "added.example", "--list", "blocked", "--reason", "x")
	g.Stop()
}

// startOverNewer starts a gate twice.
func startOverNewer(t *testing.T, dir, kind string) {
	t.Helper()
	for start := range 2 {
		g := harness.Serve(t, dir)
		for sender, want := range map[string]string{
			"x@w7.example": "550", "x@w32999.example": "550", "x@added.example": "550", "x@one.example": "550", "x@other.example": "250",
		} {
			harness.WaitVerdict(t, g.Addr, sender, want)
		}
		g.Lists(t, 0, "status", "blocked")
		g.Stop()
		for _, unwelcome := range []string{"state of another version set aside", "stored index unusable, its list is read again"} {
			if n := len(g.Records(unwelcome)); start == 1 && n > 0 {
				t.Errorf("the second start still says %q", unwelcome)
			}
		}
	}
	aside := map[string]bool{}
	eachFile(t, filepath.Join(dir, "state"), func(path string) {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".aside"); ok {
			aside[name] = true
		}
	})
	for _, name := range []string{"lists.key", "key"} {
		if want := kind == name || kind == "all"; aside[name] != want {
			t.Errorf("%s set aside: %t", name, aside[name])
		}
	}
	if kind == "all" && !aside["pinned"] {
		t.Error("the pin was not set aside")
	}
}

// eachFile calls do for each regular file below a directory.
func eachFile(t *testing.T, dir string, do func(path string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			do(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// protect gives the state directory the modes that it had before it was copied.
func protect(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "state"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.Chmod(path, 0o700)
		default:
			return os.Chmod(path, 0o600)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
