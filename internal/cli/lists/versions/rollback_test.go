package versions

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist/store"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/setup"
)

// globList is a directory with a list of several files, of which versions are kept.
type globList struct {
	*testing.T
	dir string
}

func newGlobList(t *testing.T, path string) *globList {
	t.Helper()
	g := &globList{t, t.TempDir()}
	g.write("config.toml", "[[list]]\nname = \"blocked\"\npath = \""+path+"\"\n")
	return g
}

func (g *globList) write(name, text string) {
	g.Helper()
	path := filepath.Join(g.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		g.Fatal(err)
	}
}

func (g *globList) remove(name string) {
	g.Helper()
	if err := os.Remove(filepath.Join(g.dir, name)); err != nil {
		g.Fatal(err)
	}
}

// files returns the contents of the files in part.
func (g *globList) files() map[string]string {
	g.Helper()
	all := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(g.dir, "part"))
	if err != nil {
		g.Fatal(err)
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(g.dir, "part", e.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			g.Fatal(err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

func (g *globList) want(files map[string]string) {
	g.Helper()
	if got := g.files(); !maps.Equal(got, files) {
		g.Errorf("files %q, want %q", got, files)
	}
}

func (g *globList) config() *config.Config {
	g.Helper()
	c, err := config.Load(filepath.Join(g.dir, "config.toml"))
	if err != nil {
		g.Fatal(err)
	}
	return c
}

// live keeps what the files hold as a version, and returns its ID.
func (g *globList) live() string {
	g.Helper()
	c := g.config()
	s, err := setup.BlocklistConfig(c, nil)
	if err != nil {
		g.Fatal(err)
	}
	before, _ := store.Versions(c.State.Dir, "blocked")
	opened, err := store.Open(g.Context(), s)
	if err != nil {
		g.Fatal(err)
	}
	defer opened.Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		versionInfos, err := store.Versions(c.State.Dir, "blocked")
		if err != nil {
			g.Fatal(err)
		}
		if len(versionInfos) > len(before) {
			return versionInfos[0].ID
		}
		if time.Now().After(deadline) {
			g.Fatal("no version was kept")
		}
	}
}

// lists runs a command.
func (g *globList) lists(args ...string) (string, error) {
	cmd := &cobra.Command{Use: "lists"}
	cmd.AddCommand(Commands()...)
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(append(args, "-c", filepath.Join(g.dir, "config.toml")))
	err := cmd.ExecuteContext(g.Context())
	return out.String(), err
}

func (g *globList) mustList(args ...string) string {
	g.Helper()
	out, err := g.lists(args...)
	if err != nil {
		g.Fatalf("%q: %v\n%s", args, err, out)
	}
	return out
}

// TestRollbackFiles goes to a version with other and missing files, and back.
func TestRollbackFiles(t *testing.T) {
	g := newGlobList(t, "part/*.txt")
	g.write("part/a.txt", "a.example\n")
	g.write("part/b.txt", "b.example\n")
	first := g.live()
	single := g.files()
	g.write("part/a.txt", "a.example\na2.example\n")
	g.write("part/c.txt", "c.example\n")
	g.remove("part/b.txt")
	g.live()
	two := g.files()

	// A file that the version did not have: nothing is changed.
	if _, err := g.lists("rollback", "blocked", "--to", first); err == nil || !strings.Contains(err.Error(), "version "+first+" does not have the file ") || !strings.Contains(err.Error(), "c.txt: move it to where path = ") {
		t.Errorf("rollback: %v", err)
	}
	g.want(two)
	g.remove("part/c.txt")
	delete(two, "c.txt")
	dry := g.mustList("rollback", "blocked", "--to", first, "--dry-run")
	for _, want := range []string{"a.txt: written", "b.txt: missing; written again"} {
		if !strings.Contains(dry, want) {
			t.Errorf("a dry run says %q, not %q", dry, want)
		}
	}
	g.want(two)
	g.mustList("rollback", "blocked", "--to", first, "--reason", "test")
	g.want(single)
	audit, err := os.ReadFile(filepath.Join(g.dir, "state/audit.log"))
	if err != nil || strings.Count(string(audit), `"what":"put version `+first+` back","why":"test"`) != 2 {
		t.Errorf("audit log: %s, %v", audit, err)
	}
	g.remove("part/b.txt")
	if out := g.mustList("rollback", "blocked", "--list-versions"); !strings.Contains(out, "other files than now: ") {
		t.Errorf("versions: %s", out)
	}
}

// TestRollbackPath goes back after the path of the list has changed.
func TestRollbackPath(t *testing.T) {
	g := newGlobList(t, "part/a")
	g.write("part/a", "a.example\n")
	first := g.live()
	g.write("config.toml", "[[list]]\nname = \"blocked\"\npath = \"moved/a\"\n")
	for _, missing := range []bool{false, true} {
		g.write("moved/a", "c.example\n")
		if missing {
			g.remove("moved/a")
		}
		g.mustList("rollback", "blocked", "--to", first)
		if text, err := os.ReadFile(filepath.Join(g.dir, "moved/a")); string(text) != "a.example\n" {
			t.Errorf("%q, %v", text, err)
		}
	}
	g.write("config.toml", "[[list]]\nname = \"blocked\"\npath = \"part/*.list\"\n")
	g.write("part/b.list", "b.example\n")
	g.write("part/c.list", "c.example\n")
	if _, err := g.lists("rollback", "blocked", "--to", first); err == nil || !strings.Contains(err.Error(), "does not match: set path to one that matches it") {
		t.Errorf("a path that matches nothing of it: %v", err)
	}
}

// TestRollbackFails fails at the second of two files. The same command finishes it.
func TestRollbackFails(t *testing.T) {
	g := newGlobList(t, "part/*.txt")
	g.write("part/a.txt", "a1.example\n")
	g.write("part/b.txt", "b1.example\n")
	first := g.live()
	single := g.files()
	g.write("part/a.txt", "a2.example\n")
	g.write("part/b.txt", "b2.example\n")
	g.live()
	two := g.files()
	link := filepath.Join(g.dir, "hard")
	if err := os.Link(filepath.Join(g.dir, "part/b.txt"), link); err != nil {
		t.Fatal(err)
	}
	_, err := g.lists("rollback", "blocked", "--to", first)
	if !errors.Is(err, listedit.ErrLinks) || !strings.Contains(err.Error(), "changed before that: "+filepath.Join(g.dir, "part/a.txt")+"; to finish: spamgate lists rollback blocked --to "+first) {
		t.Errorf("a file with two names: %v", err)
	}
	g.want(map[string]string{"a.txt": single["a.txt"], "b.txt": two["b.txt"]})
	g.remove("hard")
	if out := g.mustList("rollback", "blocked", "--to", first); strings.Contains(out, "a.txt: written") {
		t.Errorf("the rest: %s", out)
	}
	g.want(single)
}
