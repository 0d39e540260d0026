package versions

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist/store"
	"spamgate/internal/cli/lists/session"
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
		now, err := store.Versions(c.State.Dir, "blocked")
		if err != nil {
			g.Fatal(err)
		}
		if len(now) > len(before) {
			return now[0].ID
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

// steps returns the lines about files.
func steps(out string) []string {
	var lines []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "/part/") || strings.Contains(line, "part/") && strings.HasPrefix(line, "  ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestRollbackOtherFiles goes to versions with fewer, other and missing files, and back.
func TestRollbackOtherFiles(t *testing.T) {
	g := newGlobList(t, "part/*.txt")
	g.write("part/a.txt", "a.example\n")
	g.write("part/b.txt", "b.example\n")
	one := map[string]string{"a.txt": "a.example\n", "b.txt": "b.example\n"}
	first := g.live()
	g.write("part/a.txt", "a.example\na2.example\n")
	g.write("part/c.txt", "c.example\n")
	g.write("part/c.txt.disabled", "somebody's\n")
	g.remove("part/b.txt")
	second := g.live()
	two := g.files()
	if err := os.Chmod(filepath.Join(g.dir, "part/c.txt"), 0o640); err != nil {
		t.Fatal(err)
	}

	// Without --to it says what to do, and does nothing.
	_, err := g.lists("rollback", "blocked")
	for _, want := range []string{"version " + first + " does not have ", "c.txt (which would be renamed to c.txt.disabled.2)", "spamgate lists rollback blocked --to " + first} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rollback: %v, want %q", err, want)
		}
	}
	g.want(two)
	dry := g.mustList("rollback", "blocked", "--to", first, "--dry-run")
	g.want(two)
	done := g.mustList("rollback", "blocked", "--to", first, "--reason", "test")
	if got, want := steps(done), steps(dry); !slices.Equal(got, want) || len(got) != 3 {
		t.Errorf("done %q, a dry run says %q", got, want)
	}
	one["c.txt.disabled"], one["c.txt.disabled.2"] = "somebody's\n", "c.example\n"
	g.want(one)
	audit, err := os.ReadFile(filepath.Join(g.dir, "state/audit.log"))
	if err != nil || !strings.Contains(string(audit), `"what":"renamed c.txt to c.txt.disabled.2 to put version `+first) || strings.Count(string(audit), `"why":"test"`) != 3 {
		t.Errorf("audit log: %s, %v", audit, err)
	}

	// The way back renames the file back, with its mode.
	if out := g.mustList("rollback", "blocked", "--to", second); !strings.Contains(out, "c.txt: missing; renamed from ") {
		t.Errorf("the way back: %s", out)
	}
	two["b.txt.disabled"] = "b.example\n"
	g.want(two)
	if info, err := os.Stat(filepath.Join(g.dir, "part/c.txt")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info, err)
	}
	if out := g.mustList("rollback", "blocked", "--list-versions"); !strings.Contains(out, "other files than now: ") {
		t.Errorf("versions: %s", out)
	}
}

// A path that matches NAME.disabled gets a hidden name; a link stays a link.
func TestRollbackNames(t *testing.T) {
	g := newGlobList(t, "part/*")
	g.write("part/a", "a.example\n")
	first := g.live()
	g.write("elsewhere", "b.example\n")
	if err := os.Symlink("../elsewhere", filepath.Join(g.dir, "part/b")); err != nil {
		t.Fatal(err)
	}
	g.live()
	g.mustList("rollback", "blocked", "--to", first)
	g.want(map[string]string{"a": "a.example\n", ".b.disabled": "b.example\n"})
	if to, err := os.Readlink(filepath.Join(g.dir, "part/.b.disabled")); err != nil || to != "../elsewhere" {
		t.Errorf("%q, %v", to, err)
	}

	// Another list's file is not renamed.
	g.mustList("rollback", "blocked")
	g.write("config.toml", "[[list]]\nname = \"blocked\"\npath = \"part/*\"\n[[list]]\nname = \"own\"\npath = \"part/b\"\n")
	if _, err := g.lists("rollback", "blocked", "--to", first); err == nil || !strings.Contains(err.Error(), "list own has it, too") {
		t.Errorf("a file of two lists: %v", err)
	}

	// The list's files have moved, or its path matches none of that version.
	g.write("config.toml", "[[list]]\nname = \"blocked\"\npath = \"moved/*\"\n")
	g.write("moved/c", "c.example\n")
	g.mustList("rollback", "blocked", "--to", first)
	if text, err := os.ReadFile(filepath.Join(g.dir, "moved/a")); string(text) != "a.example\n" {
		t.Errorf("%q, %v", text, err)
	}
	g.write("config.toml", "[[list]]\nname = \"blocked\"\npath = \"part/*.list\"\n")
	g.write("part/c.list", "c.example\n")
	if _, err := g.lists("rollback", "blocked", "--to", first); err == nil || !strings.Contains(err.Error(), "does not match: set path to one that matches it") {
		t.Errorf("a path that matches nothing of it: %v", err)
	}
}

// TestRollbackFails fails at each step. Nothing may have changed then.
func TestRollbackFails(t *testing.T) {
	g := newGlobList(t, "part/*.txt")
	for _, name := range []string{"a", "b", "c"} {
		g.write("part/"+name+".txt", name+"1.example\n")
	}
	g.live()
	g.write("part/a.txt", "a2.example\n")
	g.write("part/b.txt", "b2.example\n")
	g.write("part/d.txt", "d2.example\n")
	g.remove("part/c.txt")
	g.live()

	// A file that may not be replaced, found before anything changes.
	link := filepath.Join(g.dir, "hard")
	if err := os.Link(filepath.Join(g.dir, "part/b.txt"), link); err != nil {
		t.Fatal(err)
	}
	c := g.config()
	versions, err := store.Versions(c.State.Dir, "blocked")
	if err != nil || len(versions) != 2 {
		t.Fatal(versions, err)
	}
	before := g.files()
	if _, err := g.lists("rollback", "blocked", "--to", versions[1].ID); !errors.Is(err, listedit.ErrLinks) {
		t.Errorf("a file with two names: %v", err)
	}
	g.want(before)
	g.remove("hard")

	// What happens when all contents are on the disk, and what of it stays.
	for name, meanwhile := range map[string]struct {
		do   func()
		want error
		left map[string]string
	}{
		"the other name is taken": {func() { g.write("part/d.txt.disabled", "mine\n") }, fs.ErrExist, map[string]string{"d.txt.disabled": "mine\n"}},
		"the first file changes":  {func() { g.write("part/a.txt", "mine\n") }, listedit.ErrChanged, map[string]string{"a.txt": "mine\n"}},
		"the last file appears":   {func() { g.write("part/c.txt", "mine\n") }, listedit.ErrChanged, map[string]string{"c.txt": "mine\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := rollbackOf(t, c)
			plan, err := r.plan(versions[1])
			if err != nil {
				t.Fatal(err)
			}
			f := rollbackFiles{rollback: r, version: versions[1]}
			err = f.changeBack(f.write(t.Context(), plan[:3], func() error {
				meanwhile.do()
				return f.rename(t.Context(), plan[3])
			}))
			if !errors.Is(err, meanwhile.want) || strings.Contains(err.Error(), "could not be changed back") {
				t.Errorf("error %v, want %v", err, meanwhile.want)
			}
			want := maps.Clone(before)
			maps.Copy(want, meanwhile.left)
			g.want(want)
			for name := range g.files() {
				g.remove("part/" + name)
			}
			for name, text := range before {
				g.write("part/"+name, text)
			}
		})
	}
}

func rollbackOf(t *testing.T, c *config.Config) *rollback {
	t.Helper()
	cmd := newListsRollbackCommand()
	r := &rollback{Session: &session.Session{Context: t.Context(), Flags: &session.Flags{}, Cmd: cmd, Config: c, Stderr: t.Output()}}
	if err := r.load(c.Lists[0]); err != nil {
		t.Fatal(err)
	}
	return r
}
