package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/store"
	"spamgate/internal/e2e/harness"
)

// killedEntries returns the number of entries of the lists. Without -short it is so
// large that their bits for the filter are stored.
func killedEntries() int { return harness.IfShort(34_000, 5_000) }

// bigList returns a list of killedEntries() names of one family.
func bigList(family string) string {
	var b strings.Builder
	for i := range killedEntries() {
		fmt.Fprintf(&b, "%s%d.example  # of a list of more than a megabyte\n", family, i)
	}
	return b.String()
}

// TestKilledWhileBuilding kills gates at random points while they build and store the
// index of a list whose content alternates. After each kill the state directory alone
// yields one of the two contents, whole, and the next gate serves the list's content. In
// the end no other files are left.
//
// A point is the n-th event in the state directory, and up to 2 ms more. So it may be
// while the gate writes, syncs or renames the index, its bits, the record of the files
// or the history.
func TestKilledWhileBuilding(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	list := filepath.Join(dir, "blocked.txt")
	texts := map[string]string{"a": bigList("a"), "b": bigList("b")}
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), harness.Setup{Tables: "[state]\ndir = \"state\"\n"}.Config())
	current, next := "a", "b"
	harness.WriteFile(t, list, texts[current])
	addresses := killedAddresses()

	start := func() *harness.Gate {
		g := harness.Launch(t, dir, exec.Command(harness.Binary(t), "serve"))
		return g
	}
	g := start()
	g.Addr = g.WaitListening()
	perBuild := countBuild(g, state, func() { harness.WriteFile(t, list, texts[next]) })
	current, next = next, current
	harness.WaitFor(t, "a version to be kept", func() bool { // a gate that stops does not wait for it
		versions, err := store.Versions(state, "blocked")
		return err == nil && len(versions) > 0
	})
	g.Stop()

	r := rand.New(rand.NewPCG(20, 26))
	left := map[string]int{}
	most := map[bool]int{false: perBuild, true: perBuild} // events of a build, by whether it is that of the start
	for n := range harness.IfShort(harness.IfFull(12, 200), 2) {
		atStart := n%2 == 0
		if atStart { // the gate builds when it starts
			harness.WriteFile(t, list, texts[next])
			current, next = next, current
		}
		k := newKiller(t, state, 1+r.IntN(most[atStart]), time.Duration(r.IntN(2000))*time.Microsecond)
		g := start()
		if !atStart {
			g.Addr = g.WaitListening()
			wantContent(t, g, current, next)
			replaceList(t, list, texts[next], n%4 == 1)
			current, next = next, current
			k.begin()
		} else {
			k.begin()
		}
		most[atStart] = max(min(most[atStart], k.kill(g)), perBuild*3/4) // a busy machine may pause
		noDamage(t, g.Log.String())
		for _, name := range leftovers(t, state) {
			left[kindOfLeftover(name)]++
		}
		wantStored(t, dir, list, addresses)
		wantWholeHistory(t, state, texts)
		if t.Failed() {
			t.Fatalf("after kill %d", n+1)
		}
	}
	t.Logf("%d events a build, %d at the start; left behind by those killed: %v", most[false], most[true], left)

	g = start()
	g.Addr = g.WaitListening()
	wantContent(t, g, current, next)
	countBuild(g, state, func() { harness.WriteFile(t, list, texts[next]) })
	g.Stop()
	noDamage(t, g.Log.String())
	if rest := leftovers(t, state); len(rest) > 0 {
		t.Errorf("left over in the end: %q", rest)
	}
}

// killedAddresses returns an address for each name of both lists.
func killedAddresses() []byte {
	var b bytes.Buffer
	for _, family := range []string{"a", "b"} {
		for i := range killedEntries() {
			fmt.Fprintf(&b, "x@%s%d.example\n", family, i)
		}
	}
	return b.Bytes()
}

// replaceList writes a list in place, or renames a new file over it.
func replaceList(t testing.TB, path, text string, inPlace bool) {
	t.Helper()
	if !inPlace {
		harness.WriteFile(t, path, text)
		return
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wantContent checks that a gate has the first and last entry of one content, and not
// those of the other.
func wantContent(t testing.TB, g *harness.Gate, there, gone string) {
	t.Helper()
	a := &harness.Asker{Addr: g.Addr}
	defer a.Close()
	for _, i := range []int{0, killedEntries() - 1} {
		for family, prefix := range map[string]string{there: "550", gone: "250"} {
			from := fmt.Sprintf("x@%s%d.example", family, i)
			if reply, err := a.Verdict(from, "b@example.net"); err != nil || !strings.HasPrefix(reply, prefix) {
				t.Errorf("%s: %q, %v; want %s", from, reply, err, prefix)
			}
		}
	}
}

// wantStored checks that the state directory yields one content and nothing of the
// other. The list is moved away meanwhile.
func wantStored(t testing.TB, dir, list string, addresses []byte) {
	t.Helper()
	if err := os.Rename(list, list+".away"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.Rename(list+".away", list); err != nil {
			t.Fatal(err)
		}
	}()
	cmd := exec.Command(harness.Binary(t), "check", "-")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(addresses)
	out, errs, code := harness.Run(t, cmd)
	if code != 1 {
		t.Errorf("check: exit code %d: %s", code, errs)
	}
	noDamage(t, errs)
	count := map[string]int{}
	for line := range strings.Lines(out) {
		_, address, _ := strings.Cut(line, "\tx@")
		count[address[:min(1, len(address))]]++
	}
	all := killedEntries()
	if (count["a"] == all) == (count["b"] == all) || len(count) != 1 {
		t.Errorf("of a and b are listed %v, want all %d of one", count, all)
	}
}

// wantWholeHistory checks that each version in the history is one of the contents.
func wantWholeHistory(t testing.TB, state string, texts map[string]string) {
	t.Helper()
	versions, err := store.Versions(state, "blocked")
	if err != nil || len(versions) == 0 {
		t.Errorf("%d versions in the history, %v", len(versions), err)
	}
	for _, v := range versions {
		err := store.ExtractVersion(state, "blocked", v.ID, func(_ string, content io.Reader) error {
			text, err := io.ReadAll(content)
			if err == nil && string(text) != texts["a"] && string(text) != texts["b"] {
				err = errors.New("neither of the contents")
			}
			return err
		})
		if err != nil {
			t.Errorf("history: %v", err)
		}
	}
}

// noDamage checks that a log has no messages about unusable indexes.
func noDamage(t testing.TB, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if strings.Contains(line, "damage") || strings.Contains(line, "unusable") || strings.Contains(line, "panic") {
			t.Errorf("it says: %s", line)
		}
	}
}

// expectedState are the patterns of the files and directories that belong into a state
// directory.
var expectedState = []string{"lists.key", "audit.log", "admin.sock", "work", "lists", "lists/*", "lists/*/current.*", "lists/*/accepted", "lists/*/served", "lists/*/hits",
	"lists/*/history", "lists/*/history/2*", "lists/*/history/2*/*.zst", "lists/*/history/2*/meta.json",
	"decisions", "decisions/*.db", "decisions/*.db-wal", "decisions/*.db-shm", "decisions/*.lock"}

// leftovers returns the other files and directories in it.
func leftovers(t testing.TB, state string) (rest []string) {
	t.Helper()
	err := filepath.WalkDir(state, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone by now
		}
		if err != nil || path == state {
			return err
		}
		name, err := filepath.Rel(state, path)
		if !slices.ContainsFunc(expectedState, func(pattern string) bool { ok, _ := filepath.Match(pattern, name); return ok }) {
			rest = append(rest, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rest
}

// kindOfLeftover returns the name of a leftover without digits.
func kindOfLeftover(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}
