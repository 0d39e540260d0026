package recipients

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/dirwatch"
)

// fixture is a File in a directory of its own, and its log.
type fixture struct {
	*testing.T
	path, state string
	file        *File

	mu  sync.Mutex
	log bytes.Buffer
}

func (x *fixture) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.log.Write(p)
}

func newFixture(t *testing.T) *fixture {
	dir := t.TempDir()
	x := &fixture{T: t, path: filepath.Join(dir, "etc", "domains"), state: filepath.Join(dir, "state")}
	if err := os.Mkdir(filepath.Dir(x.path), 0o755); err != nil {
		t.Fatal(err)
	}
	return x
}

// write replaces the file by renaming, as editors do.
func (x *fixture) write(text string) {
	x.Helper()
	if err := os.WriteFile(x.path+".new", []byte(text), 0o644); err != nil {
		x.Fatal(err)
	}
	if err := os.Rename(x.path+".new", x.path); err != nil {
		x.Fatal(err)
	}
}

// open opens the file. Without a poll only events bring changes.
func (x *fixture) open(poll time.Duration) error {
	x.Helper()
	if x.file != nil {
		x.file.Close()
	}
	f, err := Open(Spec{Kind: RecipientDomains, Path: x.path}, Options{
		StateDir: x.state, PollInterval: poll, debounce: 10 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(x, nil)),
	})
	if err == nil {
		x.file = f
		x.Cleanup(func() { f.Close() })
	}
	return err
}

func (x *fixture) mustOpen(poll time.Duration) {
	x.Helper()
	if err := x.open(poll); err != nil {
		x.Fatal(err)
	}
}

// want waits until the file serves domains, and is held for a reason or not.
func (x *fixture) want(domains string, reason error) {
	x.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		s := x.file.Status()
		got := strings.Join(x.file.Domains().Names(), " ")
		if got == domains && (reason == nil && s.Err == nil || reason == errAny && s.Err != nil || reason != nil && errors.Is(s.Err, reason)) {
			return
		}
		if time.Since(began) > 20*time.Second {
			x.Fatalf("serves %q with the error %v, want %q, %v", got, s.Err, domains, reason)
		}
	}
}

// logged counts the lines with a text.
func (x *fixture) logged(text string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.Count(x.log.String(), text)
}

// waitLogged waits until the log has a text: a File shows its state before it logs it.
func (x *fixture) waitLogged(text string) {
	x.Helper()
	for began := time.Now(); x.logged(text) == 0; time.Sleep(time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			x.Fatalf("the log has no %q:\n%s", text, x.text())
		}
	}
}

func (x *fixture) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.log.String()
}

// TestHeld changes a watched file in every way that must not count, each time with an error
// in the log that says what to do, and mends it.
func TestHeld(t *testing.T) {
	for name, c := range map[string]struct {
		spoil  func(x *fixture)
		reason error
		remedy string
	}{
		"empty":      {func(x *fixture) { x.write("") }, ErrEmpty, "remove policy.recipient_domains"},
		"comment":    {func(x *fixture) { x.write("# all gone\n") }, ErrEmpty, "write one entry a line"},
		"truncated":  {func(x *fixture) { os.Truncate(x.path, 0) }, ErrEmpty, "write one entry a line"},
		"broken":     {func(x *fixture) { x.write("<!DOCTYPE html>\n<p>502\n") }, ErrInvalid, "correct the lines"},
		"one line":   {func(x *fixture) { x.write("a.example\nb..example\n") }, ErrInvalid, ":2: "},
		"vanished":   {func(x *fixture) { os.Remove(x.path) }, fs.ErrNotExist, "put the file there"},
		"directory":  {func(x *fixture) { os.Remove(x.path); os.Mkdir(x.path, 0o755) }, errAny, "write the path of a regular file"},
		"no parent":  {func(x *fixture) { os.Rename(filepath.Dir(x.path), x.state+"2") }, fs.ErrNotExist, "put the file there"},
		"link loose": {func(x *fixture) { os.Remove(x.path); os.Symlink("nowhere", x.path) }, fs.ErrNotExist, "put the file there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newFixture(t)
			x.write("a.example\nb.example\n")
			x.mustOpen(time.Hour)
			c.spoil(x)
			x.want("a.example b.example", c.reason)
			x.waitLogged("level=ERROR")
			if n := x.logged("level=ERROR msg=\"recipients held, their last good version serves\""); n != 1 || x.logged(c.remedy) == 0 {
				t.Errorf("%d errors, want one that says %q:\n%s", n, c.remedy, x.text())
			}
			if err := x.file.Look(); err == nil || x.logged("level=ERROR") != 1 {
				t.Errorf("looked again: %v, and %d errors in the log", err, x.logged("level=ERROR"))
			}
			// A restart serves the last good version, too.
			x.mustOpen(time.Hour)
			x.want("a.example b.example", c.reason)
			if n := x.logged("level=ERROR"); n != 2 {
				t.Errorf("%d errors after a restart", n)
			}
			if err := x.file.Accept(); !errors.Is(err, ErrNothingHeld) {
				t.Errorf("accepted: %v", err)
			}

			os.RemoveAll(x.path)
			os.MkdirAll(filepath.Dir(x.path), 0o755)
			x.write("a.example\nc.example\n")
			x.want("a.example c.example", nil)
			x.waitLogged("recipients are good again")
		})
	}
}

// errAny stands for any error.
var errAny = errors.New("any")

// TestOpenWithout wants a start without a usable version to fail, and a copy of another file
// not to count.
func TestOpenWithout(t *testing.T) {
	x := newFixture(t)
	if err := x.open(time.Hour); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	x.write("\n")
	if err := x.open(time.Hour); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty: %v", err)
	}
	x.write("a.example\n")
	x.mustOpen(time.Hour)
	first := x.path
	x.path += "2"
	if err := x.open(time.Hour); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("another path: %v", err)
	}
	x.path = first
	if err := os.WriteFile(filepath.Join(x.state, copyDir, "recipient_domains"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	x.mustOpen(time.Hour)
	x.want("a.example", nil)
}

// TestChanges wants changes to count that come by rename, by writing in place, and by a link
// that is switched; and by polling alone.
func TestChanges(t *testing.T) {
	t.Parallel()
	x := newFixture(t)
	x.write("a.example\n")
	x.mustOpen(time.Hour)
	for i := range 5 {
		x.write(fmt.Sprintf("a%d.example\n", i))
		x.want(fmt.Sprintf("a%d.example", i), nil)
	}
	if err := os.WriteFile(x.path, []byte("b.example\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	x.want("b.example", nil)

	// As in a volume of Kubernetes: the file is a link through a link that is switched.
	dir := filepath.Dir(x.path)
	for _, n := range []string{"1", "2"} {
		os.Mkdir(filepath.Join(dir, n), 0o755)
		os.WriteFile(filepath.Join(dir, n, "domains"), []byte("v"+n+".example\n"), 0o644)
	}
	os.Remove(x.path)
	os.Symlink("1", filepath.Join(dir, "now"))
	os.Symlink("now/domains", x.path)
	x.want("v1.example", nil)
	os.Symlink("2", filepath.Join(dir, "next"))
	os.Rename(filepath.Join(dir, "next"), filepath.Join(dir, "now"))
	x.want("v2.example", nil)

	// Times may be set back, and a second change may have the time of the first.
	stamp := time.Now().Add(-time.Hour)
	for _, d := range []string{"c.example", "d.example"} {
		os.WriteFile(x.path+".new", []byte(d+"\n"), 0o644)
		os.Chtimes(x.path+".new", stamp, stamp)
		os.Rename(x.path+".new", x.path)
		x.want(d, nil)
	}
	x.mustOpen(5 * time.Millisecond)
	x.file.watcher.Close() // no events
	x.write("polled.example\n")
	x.want("polled.example", nil)
}

// TestWrittenInPieces writes a file in place while somebody looks at it. No version counts
// before the last.
func TestWrittenInPieces(t *testing.T) {
	t.Parallel()
	const debounce = 500 * time.Millisecond
	for attempt := 0; ; attempt++ {
		x := newFixture(t)
		x.write("a.example\nb.example\n")
		f := newFile(Spec{Kind: RecipientDomains, Path: x.path}, Options{debounce: debounce, Logger: slog.New(slog.NewTextHandler(x, nil))})
		f.watcher = dirwatch.New(f.log, "recipients", false)
		if err := f.first(); err != nil {
			t.Fatal(err)
		}
		w, err := os.Create(x.path)
		if err != nil {
			t.Fatal(err)
		}
		looked := make(chan error, 1)
		began := time.Now()
		go func() { looked <- f.Look() }()
		slow := false
		for _, piece := range []string{"a.exam", "ple\n", "b.", "exam", "ple\n", "c.", "example", "\n"} {
			time.Sleep(debounce / 5)
			w.WriteString(piece)
			slow = slow || time.Since(began) > debounce/2
			began = time.Now()
		}
		w.Close()
		err = <-looked
		f.watcher.Close()
		if slow && attempt < 20 {
			continue // this machine is busy: the writer itself was too slow
		}
		if got := strings.Join(f.Domains().Names(), " "); err != nil || got != "a.example b.example c.example" || x.logged("recipients live") != 2 || x.logged("ERROR") != 0 {
			t.Errorf("%q, %v:\n%s", got, err, x.text())
		}
		return
	}
}

// many returns n domains.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "d%d.example\n", i)
	}
	return b.String()
}

// TestShrunk wants a file that loses more than a fifth of its entries to be held, also by a
// restart, until that is accepted, and no other version with it.
func TestShrunk(t *testing.T) {
	t.Parallel()
	x := newFixture(t)
	entries := func(want int, reason error) {
		t.Helper()
		s := x.file.Status()
		if s.Entries != want || !errors.Is(s.Err, reason) {
			t.Errorf("%d entries, %v; want %d, %v", s.Entries, s.Err, want, reason)
		}
	}
	look := func() { _ = x.file.Look() }
	x.write(many(1000))
	x.mustOpen(time.Hour)
	x.write(many(800))
	look()
	entries(800, nil)
	x.write(many(1000))
	look()
	x.write(many(799))
	look()
	entries(1000, ErrShrunk)
	if s := x.file.Status(); !s.Acceptable || s.OnDisk != 799 {
		t.Errorf("%+v", s)
	}
	x.mustOpen(time.Hour)
	entries(1000, ErrShrunk)
	if err := x.file.Accept(); err != nil {
		t.Fatal(err)
	}
	entries(799, nil)
	x.mustOpen(time.Hour)
	entries(799, nil)
	if err := x.file.Accept(); !errors.Is(err, ErrNothingHeld) {
		t.Errorf("accepted again: %v", err)
	}
	// A few invalid lines of many are skipped.
	x.write(many(999) + "b..example\n")
	look()
	entries(999, nil)
	if s := x.file.Status(); s.Invalid != 1 || s.First.Line != 1000 {
		t.Errorf("%+v", s)
	}
}

// TestRead wants a reader to see what a gate would, and to write nothing.
func TestRead(t *testing.T) {
	x := newFixture(t)
	x.write("a.example\n")
	spec := Spec{Kind: RecipientDomains, Path: x.path}
	if _, err := Read(spec, x.state); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(x.state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state directory: %v", err)
	}
	x.mustOpen(time.Hour)
	os.Remove(x.path)
	f, err := Read(spec, x.state)
	if err != nil || f.Domains().Len() != 1 || f.Status().Err == nil {
		t.Errorf("%v, %+v", err, f)
	}
}

// TestPolicyFile wants the file of a policy to be empty only on purpose, to be held if it lost
// many entries, and two policies to have copies of their own.
func TestPolicyFile(t *testing.T) {
	x := newFixture(t)
	open := func(policy string) *File {
		t.Helper()
		f, err := Open(Spec{RecipientPolicy, policy, x.path}, Options{StateDir: x.state, PollInterval: time.Hour, debounce: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	x.write("\n")
	f := open("sales")
	var many strings.Builder
	for i := range guardEntries {
		fmt.Fprintf(&many, "user%d@example.net\n", i)
	}
	for _, step := range []struct {
		text    string
		entries int
		reason  error
	}{
		{"@example.net\n!ann@example.net\n", 2, nil},
		{"\n", 2, ErrEmpty},
		{"# nobody\n", 0, nil},
		{many.String(), guardEntries, nil},
		{"@example.net\n", guardEntries, ErrShrunk},
		{"example.net OK\n\n@\n", guardEntries, ErrInvalid},
	} {
		x.write(step.text)
		if err := f.Look(); !errors.Is(err, step.reason) || f.Set().Len() != step.entries {
			t.Errorf("%.20q: %d entries, %v", step.text, f.Set().Len(), err)
		}
	}
	if f.Status().Name() != "sales" {
		t.Errorf("the name is %q", f.Status().Name())
	}
	x.write("@example.org\n")
	if g := open("other"); g.Set().Len() != 1 || open("sales").Set().Len() != guardEntries {
		t.Error("the policies share a copy")
	}
	if err := os.Remove(x.path); err != nil {
		t.Fatal(err)
	}
	_, err := Read(Spec{RecipientPolicy, "third", x.path}, x.state)
	if err == nil || !strings.Contains(err.Error(), "match of the [[recipient_policy]] third") {
		t.Errorf("without the file: %v", err)
	}
}
