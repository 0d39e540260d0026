package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestReplaceFileKeepsPermissions: a file that is replaced keeps its permissions,
// also those that the umask takes from new files.
func TestReplaceFileKeepsPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = 0o666
	if err := os.Chmod(path, want); err != nil {
		t.Fatal(err)
	}
	target, perm, err := CheckTarget("--out", path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = ReplaceFile(context.Background(), target, perm, func(w io.Writer) (int64, error) {
		n, err := io.WriteString(w, "new")
		return int64(n), err
	})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != want {
		t.Errorf("mode %v, want %v", info.Mode().Perm(), os.FileMode(want))
	}
}
