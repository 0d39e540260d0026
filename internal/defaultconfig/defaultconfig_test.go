package defaultconfig

import (
	"io/fs"
	"os"
	"path"
	"testing"
)

const root = "../.."

// TestCopies compares the copies with the originals, unless those are edited.
func TestCopies(t *testing.T) {
	Clone(t, root)
	found, err := fs.Glob(os.DirFS(root), "lists/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	copies, err := fs.Glob(files, "lists/*")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != len(copies) {
		Edited(t, path.Join(root, "lists"))
	}
	for _, name := range copies {
		if text, err := fs.ReadFile(os.DirFS(root), name); err != nil || live(string(text)) != live(read(files, name)) {
			Edited(t, path.Join(root, name))
		}
	}
}

func TestLive(t *testing.T) {
	const text = "# a comment\r\n\n a = 1  # one\n\t# b = 2\n[c]"
	if got, want := live(text), "a = 1  # one\n[c]\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
