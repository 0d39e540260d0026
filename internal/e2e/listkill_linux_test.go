package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"spamgate/blocklist/store"
)

// killedEntries is how long the lists are: so long that their bits for the filter are
// kept, but for -short.
func killedEntries() int { return short(34_000, 5_000) }

// bigList is a list of killedEntries() names of one family.
func bigList(family string) string {
	var b strings.Builder
	for i := range killedEntries() {
		fmt.Fprintf(&b, "%s%d.example  # of a list of more than a megabyte\n", family, i)
	}
	return b.String()
}

// TestKilledWhileBuilding kills gates at random points while they make and keep
// the index of a list whose content alternates. After each kill the state directory
// gives one of the two contents, whole, although the list itself is away; and the
// next gate serves what the list says. In the end nothing is left over.
//
// The point is the n-th thing that happens in the state directory, and a moment
// more: so it is in each of writing, syncing and renaming the index, its bits, what
// was seen of the files, and the history.
func TestKilledWhileBuilding(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	list := filepath.Join(dir, "blocked.txt")
	texts := map[string]string{"a": bigList("a"), "b": bigList("b")}
	writeFile(t, filepath.Join(dir, "config.toml"), setup{more: "[state]\ndir = \"state\"\n"}.config())
	now, next := "a", "b"
	writeFile(t, list, texts[now])
	addresses := killedAddresses()

	start := func() *gate {
		g := launch(t, dir, exec.Command(binary(t), "serve"))
		return g
	}
	g := start()
	g.addr = g.waitListening()
	perBuild := g.countBuild(state, func() { writeFile(t, list, texts[next]) })
	now, next = next, now
	await(t, "a version to be kept", func() bool { // which a gate that stops does not wait for
		versions, err := store.Versions(state, "blocked")
		return err == nil && len(versions) > 0
	})
	g.stop()

	r := rand.New(rand.NewPCG(20, 26))
	left := map[string]int{}
	most := map[bool]int{false: perBuild, true: perBuild} // events of a build, of that of the start
	for n := range short(amount(40, 200), 2) {
		atStart := n%2 == 0
		if atStart { // the build is that of the start
			writeFile(t, list, texts[next])
			now, next = next, now
		}
		k := newKiller(t, state, 1+r.IntN(most[atStart]), time.Duration(r.IntN(2000))*time.Microsecond)
		g := start()
		if !atStart {
			g.addr = g.waitListening()
			wantContent(t, g, now, next)
			replaceList(t, list, texts[next], n%4 == 1)
			now, next = next, now
			k.begin()
		} else {
			k.begin()
		}
		most[atStart] = max(min(most[atStart], k.kill(g)), perBuild*3/4) // a busy machine may look quiet
		noDamage(t, g.log.String())
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
	g.addr = g.waitListening()
	wantContent(t, g, now, next)
	g.countBuild(state, func() { writeFile(t, list, texts[next]) })
	g.stop()
	noDamage(t, g.log.String())
	if rest := leftovers(t, state); len(rest) > 0 {
		t.Errorf("left over in the end: %q", rest)
	}
}

func killedAddresses() []byte {
	var b bytes.Buffer
	for _, family := range []string{"a", "b"} {
		for i := range killedEntries() {
			fmt.Fprintf(&b, "x@%s%d.example\n", family, i)
		}
	}
	return b.Bytes()
}

// replaceList writes a list in place, or beside it and renames.
func replaceList(t testing.TB, path, text string, inPlace bool) {
	t.Helper()
	if !inPlace {
		writeFile(t, path, text)
		return
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wantContent asks a gate for the first and last entry of a content that is to be
// there, and of one that isn't.
func wantContent(t testing.TB, g *gate, there, gone string) {
	t.Helper()
	a := &asker{addr: g.addr}
	defer a.close()
	for _, i := range []int{0, killedEntries() - 1} {
		for family, prefix := range map[string]string{there: "550", gone: "250"} {
			from := fmt.Sprintf("x@%s%d.example", family, i)
			if reply, err := a.verdict(from, "b@example.net"); err != nil || !strings.HasPrefix(reply, prefix) {
				t.Errorf("%s: %q, %v; want %s", from, reply, err, prefix)
			}
		}
	}
}

// wantStored wants one content, and nothing of the other, from what is stored:
// the list is away meanwhile.
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
	cmd := exec.Command(binary(t), "check", "-")
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(addresses)
	out, errs, code := run(t, cmd)
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

// wantWholeHistory wants each kept version to be one of the contents.
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

// noDamage looks for what is said of indexes that can't be used.
func noDamage(t testing.TB, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if strings.Contains(line, "damage") || strings.Contains(line, "unusable") || strings.Contains(line, "panic") {
			t.Errorf("it says: %s", line)
		}
	}
}

// kept are the files and directories of a state directory that are to be there,
// by their place.
var kept = []string{"lists.key", "audit.log", "admin.sock", "work", "lists", "lists/*", "lists/*/current.*", "lists/*/accepted", "lists/*/hits",
	"lists/*/history", "lists/*/history/2*", "lists/*/history/2*/*.zst", "lists/*/history/2*/meta.json"}

// leftovers is what else is there.
func leftovers(t testing.TB, state string) (rest []string) {
	t.Helper()
	err := filepath.WalkDir(state, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone meanwhile
		}
		if err != nil || path == state {
			return err
		}
		name, err := filepath.Rel(state, path)
		if !slices.ContainsFunc(kept, func(pattern string) bool { ok, _ := filepath.Match(pattern, name); return ok }) {
			rest = append(rest, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rest
}

// kindOfLeftover is what is left over without the numbers in its name.
func kindOfLeftover(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// happenings tells of what happens in a directory and all below it.
type happenings struct {
	*fsnotify.Watcher
}

func watchTree(t testing.TB, dir string) happenings {
	t.Helper()
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	h := happenings{w}
	h.add(dir)
	return h
}

// add watches what is there now. Directories that are gone again don't matter.
func (h happenings) add(dir string) {
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			h.Add(path)
		}
		return nil
	})
}

// next waits for something to happen.
func (h happenings) next(late <-chan time.Time) bool {
	select {
	case e := <-h.Events:
		h.note(e)
		return true
	case <-late:
	}
	select { // it may be too late because this process was held up
	case e := <-h.Events:
		h.note(e)
		return true
	default:
		return false
	}
}

// note watches what was made.
func (h happenings) note(e fsnotify.Event) {
	if e.Has(fsnotify.Create) {
		h.add(e.Name)
	}
}

// quiet is how long nothing happens in a state directory once all is done.
const quiet = time.Second

// countBuild changes the list of a gate, and counts what happens in its state
// directory until nothing does any more.
func (g *gate) countBuild(state string, change func()) (n int) {
	g.t.Helper()
	h := watchTree(g.t, state)
	defer h.Close()
	change()
	g.waitRecord("lists live", "generation", "2")
	for h.next(time.After(quiet)) {
		n++
	}
	return max(1, n)
}

// killer kills a gate once enough has happened.
type killer struct {
	happenings
	events int
	delay  time.Duration
}

func newKiller(t testing.TB, state string, events int, delay time.Duration) *killer {
	return &killer{watchTree(t, state), events, delay}
}

// begin forgets what has happened so far.
func (k *killer) begin() {
	for {
		select {
		case e := <-k.Events:
			k.note(e)
		default:
			return
		}
	}
}

// kill waits for as many events as are wanted, or no more to come. It returns how
// many a build has, as far as it knows now.
func (k *killer) kill(g *gate) (events int) {
	defer k.Close()
	events = math.MaxInt
	for n := range k.events {
		if !k.next(time.After(quiet)) {
			events = max(1, n)
			break
		}
	}
	time.Sleep(k.delay)
	g.kill()
	g.wait()
	return events
}
