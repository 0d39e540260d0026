package lists

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spamgate/internal/admin"
	"spamgate/internal/e2e/harness"
	"spamgate/internal/managed"
)

// managedSetup is a gate with managed lists.
var managedSetup = harness.Setup{
	Tables: "[state]\ndir = \"state\"\n[admin]\nsocket = \"run/admin.sock\"\n",
	Lists: `
[[list]]
name = "blocked"
managed = true
default = true
[[list]]
name = "allowed"
managed = true
type = "allow"
default = true
`,
}

func managedFile(dir string) string { return filepath.Join(dir, "state", "managed", "blocked.txt") }

// entriesIn returns the entries of a managed list. A line that is not whole fails the test.
func entriesIn(t testing.TB, dir string) (entries []string) {
	t.Helper()
	text, err := os.ReadFile(managedFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(text, []byte("\n")) {
		t.Errorf("the list does not end in a line end: %q", text)
	}
	for line := range strings.Lines(string(text)) {
		if entry, whole := strings.CutSuffix(line, "  # whole\n"); whole {
			entries = append(entries, entry)
		} else if line[0] != '#' {
			t.Errorf("the list has the line %q", line)
		}
	}
	return entries
}

// recorded returns the entries that the audit log says the list blocked should have, from its
// changes alone.
func recorded(t testing.TB, dir string) (entries []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "state", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r struct {
			List, Entry string
			After       []string
		}
		if json.Unmarshal([]byte(line), &r) != nil || r.List != "blocked" || r.Entry == "" {
			continue
		}
		entries = slices.DeleteFunc(entries, func(e string) bool { return e == r.Entry })
		if r.After != nil {
			entries = append(entries, r.Entry)
		}
	}
	return entries
}

// TestManagedByGroup has a user without any rights to the state directory, but in the group of
// the admin socket, use the commands of lists.
func TestManagedByGroup(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be another user")
	}
	dir, err := os.MkdirTemp("", "managed-group-") // another user may enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(filepath.Join(dir, "run"), 0o755)); err != nil {
		t.Fatal(err)
	}
	setup := managedSetup
	setup.Tables += "socket_mode = \"0660\"\nsocket_group = \"65533\"\n"
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), setup.Config())
	if err := os.Chmod(filepath.Join(dir, "config.toml"), 0o644); err != nil {
		t.Fatal(err)
	}
	g := harness.Serve(t, dir)
	program := filepath.Join(dir, "spamgate") // where he may read it
	if text, err := os.ReadFile(harness.Binary(t)); err != nil || os.WriteFile(program, text, 0o755) != nil {
		t.Fatal(err)
	}
	as := func(want int, stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
		cmd.Env = append(os.Environ(), "SUDO_USER=")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65532, Gid: 65532, Groups: []uint32{65533}}}
		out, errs, code := harness.Run(t, cmd)
		if code != want {
			t.Errorf("%s: exit code %d, want %d\n%s%s", strings.Join(args, " "), code, want, out, errs)
		}
		return out + errs
	}
	says := func(text, want string) {
		t.Helper()
		if !strings.Contains(text, want) {
			t.Errorf("it says\n%s\nwithout %q", text, want)
		}
	}
	says(as(0, "", "lists", "add", "a.example", "--reason", "whole"), "live in the running gate")
	harness.WaitVerdict(t, g.Addr, "x@a.example", "550")
	as(0, "", "lists", "add", "x@a.example", "--allow", "--reason", "whole")
	harness.WaitVerdict(t, g.Addr, "x@a.example", "250")
	as(0, "b.example  # whole\n", "lists", "import", "-", "--list", "blocked")
	says(as(0, "", "lists", "find", "b.example"), "blocked")
	says(as(0, "", "lists", "export", "--list", "blocked", "--format", "plain"), "b.example")
	as(0, "", "lists", "lint", "--list", "blocked")
	as(0, "", "lists", "move", "b.example", "--from", "blocked", "--to", "allowed")
	as(0, "", "lists", "compare", "--remove")
	as(0, "", "lists", "remove", "a.example")
	changes := as(0, "", "lists", "changes", "--list", "blocked", "--entry", "a.example")
	says(changes, "removed a.example")
	says(changes, "65532") // he has no name
	_, rest, _ := strings.Cut(changes[strings.Index(changes, "removed a.example"):], "change ")
	as(0, "", "lists", "undo", strings.Fields(rest)[0])
	harness.WaitFor(t, "two versions", func() bool {
		return strings.Count(as(0, "", "lists", "rollback", "blocked", "--list-versions"), "\n") > 2
	})
	versions := strings.Split(strings.TrimSpace(as(0, "", "lists", "rollback", "blocked", "--list-versions")), "\n")
	oldest := strings.Fields(versions[len(versions)-1])[0]
	says(as(0, "", "lists", "rollback", "blocked", "--dry-run", "--to", oldest), "would put back")
	if got := entriesIn(t, dir); !slices.Equal(got, []string{"a.example"}) {
		t.Errorf("the list has %q", got)
	}
	if err := os.Chmod(filepath.Join(dir, "run", "admin.sock"), 0o600); err != nil {
		t.Fatal(err)
	}
	says(as(2, "", "lists", "add", "d.example", "--reason", "x"), "permission denied")
}

// TestManagedImportMeanwhile adds an entry while an import reads its input: the import begins again,
// and the list gets all entries.
func TestManagedImportMeanwhile(t *testing.T) {
	t.Parallel()
	dir := managedSetup.Dir(t)
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	g := harness.Serve(t, dir)
	cmd := exec.Command(harness.Binary(t), "lists", "import", "-", "--format", "plain", "--list", "blocked", "--reason", "whole")
	cmd.Dir = g.Dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	const n = 40_000
	for i := range n {
		if i == n/2 { // more than pipes hold: the list was read before
			g.Command(t, 0, "lists", "add", "meanwhile.example", "--list", "blocked", "--reason", "whole")
		}
		if _, err := fmt.Fprintf(in, "entry%d.in.the.import.example\n", i); err != nil {
			t.Fatal(err)
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if want := fmt.Sprintf("%d added to list blocked, 0 already there", n); !strings.Contains(out.String(), want) {
		t.Errorf("there is no %q in %s", want, &out)
	}
	entries := entriesIn(t, g.Dir)
	if len(entries) != n+1 || !slices.Contains(entries, "meanwhile.example") {
		t.Errorf("%d entries, want %d", len(entries), n+1)
	}
}

// TestManagedFull edits a managed list while the state directory is full: nothing is half
// written, the error says so, and what was made is recorded.
func TestManagedFull(t *testing.T) {
	t.Parallel()
	harness.PrivateMounts(t)
	setup := managedSetup
	setup.Tables = "[state]\ndir = \"state\"\n"
	dir := setup.Dir(t)
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", state, "tmpfs", 0, "mode=0700,size=4m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(state, unix.MNT_DETACH) })
	g := harness.Serve(t, dir)
	run := func(args ...string) (string, int) {
		cmd := exec.Command(harness.Binary(t), args...)
		cmd.Dir = dir
		out, errs, code := harness.Run(t, cmd)
		return out + errs, code
	}
	if out, code := run("lists", "add", "first.example", "--reason", "whole"); code != 0 {
		t.Fatal(out)
	}
	before, err := os.ReadFile(managedFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	filler, err := os.Create(filepath.Join(state, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.CopyN(filler, zeros{}, 64<<20) // until it is full
	filler.Close()
	refused := 0
	for i := range 20 {
		out, code := run("lists", "add", fmt.Sprintf("full%d.example", i), "--reason", "whole")
		if code == 0 {
			continue // there was room for it
		}
		refused++
		if !strings.Contains(out, "is not changed") || !strings.Contains(out, "no space left on device") {
			t.Errorf("it says %s", out)
		}
	}
	if refused == 0 {
		t.Error("no edit was refused")
	}
	if text, err := os.ReadFile(managedFile(dir)); err != nil || !bytes.HasPrefix(text, before) {
		t.Errorf("the list is %q, %v", text, err)
	}
	if got, want := entriesIn(t, dir), recorded(t, dir); !slices.Equal(got, want) {
		t.Errorf("the list has %q, and the audit log says %q", got, want)
	}
	harness.WaitVerdict(t, g.Addr, "x@first.example", "550")
	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}
	if out, code := run("lists", "add", "second.example", "--reason", "whole"); code != 0 {
		t.Error(out)
	}
	harness.WaitVerdict(t, g.Addr, "x@second.example", "550")
	if got, want := entriesIn(t, dir), recorded(t, dir); !slices.Equal(got, want) {
		t.Errorf("with room the list has %q, and the audit log says %q", got, want)
	}
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestManagedKilled kills gates in the midst of edits. The list is whole after each, it has
// each edit whose answer came, and the audit log records each.
func TestManagedKilled(t *testing.T) {
	t.Parallel()
	setup := managedSetup
	setup.Tables = "[state]\ndir = \"state\"\n"
	dir := setup.Dir(t)
	random := rand.New(rand.NewPCG(17, 3))
	sure := map[string]bool{} // edits that were answered
	for round := range harness.IfFull(3, 50) {
		g := harness.Serve(t, dir)
		client, err := admin.Dial(g.SocketPath())
		if err != nil {
			t.Fatal(err)
		}
		kill, delay := time.AfterFunc(time.Hour, g.Kill), time.Duration(random.IntN(300))*time.Millisecond
		if round > 0 { // in the first, an edit is answered before
			kill.Reset(delay)
		}
		for i := range 1000 {
			name := fmt.Sprintf("e%d-%d.example", round, i)
			if _, err := admin.Call(context.Background(), client, admin.OpAdd, admin.AddRequest{Entries: []managed.NewEntry{{Name: managed.Name{Entry: name}, Reason: "whole"}}}, "blocked"); err != nil {
				break
			}
			if sure[name] = true; len(sure) == 1 {
				kill.Reset(delay)
			}
		}
		client.Close()
		if kill.Stop() {
			t.Fatal("the gate refused an edit before it was killed")
		}
		g.Ended = true
		<-g.Exited
		got := entriesIn(t, dir)
		for name := range sure {
			if !slices.Contains(got, name) {
				t.Errorf("round %d: %s is lost", round, name)
			}
		}
		records := recorded(t, dir)
		for _, name := range got {
			if !slices.Contains(records, name) {
				t.Errorf("round %d: %s is not in the audit log", round, name)
			}
		}
		if len(records) > len(got)+round+1 { // at most one a kill was recorded and not made
			t.Errorf("round %d: %d records, %d entries", round, len(records), len(got))
		}
	}
	if len(sure) == 0 {
		t.Error("no edit was made")
	}
}

// TestManagedImportUndone imports a wrong file and notices it after seven small edits: the undo takes
// out what the import put in and nothing else, and the version before it is kept, although [state]
// history = 5 counts seven later ones. The dry run of a rollback to it names these edits.
func TestManagedImportUndone(t *testing.T) {
	t.Parallel()
	dir := managedSetup.Dir(t)
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	g := harness.Serve(t, dir)
	type version struct {
		Version string `json:"version"`
		Entries int    `json:"entries"`
		OnDisk  bool   `json:"on_disk"`
	}
	versions := func() (all []version) {
		t.Helper()
		if err := json.Unmarshal([]byte(g.Lists(t, 0, "rollback", "blocked", "--list-versions", "--json")), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	kept := func(entries int) {
		t.Helper()
		harness.WaitFor(t, fmt.Sprintf("the version with %d entries to be kept", entries), func() bool {
			all := versions()
			return len(all) > 0 && all[0].Entries == entries && all[0].OnDisk
		})
	}
	g.Lists(t, 0, "add", "before.example", "--list", "blocked", "--reason", "whole")
	kept(1)
	const n = 12_000
	harness.WriteFile(t, filepath.Join(g.Dir, "wrong.txt"), harness.NumberedList(n))
	g.Lists(t, 0, "import", "wrong.txt", "--list", "blocked", "--reason", "whole")
	kept(n + 1)
	for i := range 7 {
		g.Lists(t, 0, "add", fmt.Sprintf("later%d.example", i), "--list", "blocked", "--reason", "whole")
		kept(n + 2 + i)
	}
	all := versions() // the newest, five before it, and that before the import; and perhaps the empty one
	before := slices.IndexFunc(all, func(v version) bool { return v.Entries == 1 })
	if before < 0 || len(all) > 8 {
		t.Fatalf("versions %+v", all)
	}
	first := all[before]
	text := g.Lists(t, 0, "rollback", "blocked", "--to", first.Version, "--dry-run")
	for _, want := range []string{"added later0.example", "added later6.example", fmt.Sprintf("added %d of %d entries of wrong.txt", n, n), "would be taken back"} {
		if !strings.Contains(text, want) {
			t.Errorf("the dry run of the rollback lacks %q:\n%s", want, text)
		}
	}
	type change struct {
		Command   string `json:"command"`
		CommandID string `json:"command_id"`
	}
	var changes []change
	if err := json.Unmarshal([]byte(g.Lists(t, 0, "changes", "--json")), &changes); err != nil {
		t.Fatal(err)
	}
	pos := slices.IndexFunc(changes, func(c change) bool { return c.Command == "import" })
	if pos < 0 || changes[pos].CommandID == "" {
		t.Fatalf("changes %+v", changes)
	}
	if text := g.Lists(t, 0, "undo", changes[pos].CommandID, "--reason", "the wrong file"); !strings.Contains(text, "12,000 entries as before") || strings.Contains(text, "stay") {
		t.Errorf("undo says %q", text)
	}
	if entries := entriesIn(t, g.Dir); len(entries) != 8 || entries[0] != "before.example" || entries[7] != "later6.example" {
		t.Errorf("the list has %d entries: %.200q", len(entries), entries)
	}
	harness.WaitVerdict(t, g.Addr, "x@w100.example", "250")
	harness.WaitVerdict(t, g.Addr, "x@later3.example", "550")
}
