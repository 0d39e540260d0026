package gate

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
)

// servedList opens a store with the list in a file, and returns it as it serves.
func servedList(t *testing.T, text string, keys ...string) (config.List, *blocklist.Set, blocklist.ListStats) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "blocked.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse(filepath.Join(dir, "config.toml"), []byte("[[list]]\nname = \"blocked\"\npath = \"blocked.txt\"\n"+strings.Join(keys, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := setup.BlocklistConfig(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), lists)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	set := s.Set()
	return c.Lists[0], set, set.Stats().Lists[0]
}

// TestWritePublished wants the file of a list and its index to be published alike.
func TestWritePublished(t *testing.T) {
	const text = `# a comment
spam.example   # the reason ## private

ann@spam.example # until:2099-01-01 a while
old.example # until:2001-01-01 over
!good.spam.example ## private
*.sub.example
@exact.example#reason
.dot.example
@[192.0.2.1]
bücher.example # für Ännchen
info@ ## until:2099-01-01
<>
not an entry
`
	for _, keys := range [][]string{nil, {"public_reason = false"}, {`match = "exact"`}} {
		t.Run(fmt.Sprint(keys), func(t *testing.T) {
			l, set, stats := servedList(t, text, keys...)
			if !listfiles.IsServedFile(l, stats) {
				t.Fatal("not published from the file")
			}
			var file, index strings.Builder
			if left, err := writePublished(&file, l, set, stats, true); err != nil || left > 0 {
				t.Fatal(left, err)
			}
			if left, err := writePublished(&index, l, set, stats, false); err != nil || left > 0 {
				t.Fatal(left, err)
			}
			if file.String() != index.String() {
				t.Errorf("from the file:\n%s\nfrom the index:\n%s", &file, &index)
			}
			if n := strings.Count(file.String(), "\n"); n != 11 {
				t.Errorf("%d lines:\n%s", n, &file)
			}
			if strings.Contains(file.String(), "private") || strings.Contains(file.String(), "reason") != l.PublicReason {
				t.Errorf("%s", &file)
			}
		})
	}
}

// TestPublishChanging wants a file that is not the one that serves not to be published.
func TestPublishChanging(t *testing.T) {
	l, set, stats := servedList(t, "a.example\n")
	for _, change := range []func(path string) error{
		func(path string) error { return os.WriteFile(path, []byte("b.example\n"), 0o600) },
		func(path string) error { return os.WriteFile(path, []byte("a.example\n# more\n"), 0o600) },
		os.Remove,
	} {
		if err := change(stats.Files[0].Path); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if _, err := writePublished(&b, l, set, stats, true); !errors.Is(err, listfiles.ErrChanges) {
			t.Error(err)
		}
	}
}
