package state

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"spamgate/internal/e2e/harness"
)

// gateUser owns the state directory if the test runs as root.
const gateUser = 54321

// A plantedDir is a gate's directory. Its state directory has all kinds of files that
// there can be, and a directory outside of it must not change.
type plantedDir struct {
	t                      *testing.T
	dir, state, good, away string
	root                   bool
}

// newPlantedDir has a gate and its commands fill such a directory.
func newPlantedDir(t *testing.T) *plantedDir {
	p := &plantedDir{t: t, dir: t.TempDir(), root: os.Geteuid() == 0}
	for _, dir := range []string{filepath.Dir(p.dir), filepath.Dir(harness.Binary(t))} { // the gate's user needs to enter them
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.state, p.good, p.away = filepath.Join(p.dir, "state"), filepath.Join(p.dir, "good"), filepath.Join(p.dir, "away")
	var version atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "fetched%d.example\nfetched.example\n", version.Load())
	}))
	t.Cleanup(web.Close)
	harness.WriteFile(t, filepath.Join(p.dir, "blocked.txt"), "long0.example\n")
	harness.WriteFile(t, filepath.Join(p.dir, "config.toml"), harness.Setup{
		Tables: "[state]\ndir = \"state\"\n",
		Keys:   map[string]string{"log": "addresses = \"hash\""},
		Lists: harness.BlockedLists + fmt.Sprintf("[[list]]\nname = \"fetched\"\nurl = %q\nallow_http = true\n",
			web.URL),
	}.Config())
	if err := errors.Join(os.Mkdir(p.state, 0o700), os.Mkdir(filepath.Join(p.dir, "mail"), 0o700)); err != nil {
		t.Fatal(err)
	}
	p.giveAway(p.dir)
	g := p.serve()
	g.Addr = g.WaitListening()
	harness.WaitVerdict(t, g.Addr, "x@long0.example", "550")
	for ; version.Load() < 3; version.Add(1) {
		p.must("lists", "fetch")
		p.must("lists", "add", fmt.Sprintf("added%d.example", version.Load()), "--list", "blocked", "--reason", "a test")
	}
	harness.WaitFor(t, "versions to be kept", func() bool {
		found, _ := filepath.Glob(filepath.Join(p.state, "lists/*/history/2*")) // the pattern is well-formed
		return len(found) >= 4
	})
	g.Stop()
	p.must("lists", "remove", "added0.example", "--list", "blocked", "--reason", "a test") // without a gate
	for _, name := range []string{"building", "current.bits"} {                            // a long list has them
		harness.WriteFile(t, filepath.Join(p.state, "lists", "blocked", name), "{}")
	}
	if err := os.Rename(p.state, p.good); err != nil {
		t.Fatal(err)
	}
	return p
}

// giveAway gives all that is in a directory to the gate's user.
func (p *plantedDir) giveAway(dir string) {
	if !p.root {
		return
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, gateUser, gateUser))
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// serve starts a gate as the gate's user.
func (p *plantedDir) serve() *harness.Gate {
	cmd := exec.Command(harness.Binary(p.t), "serve")
	if p.root {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: gateUser, Gid: gateUser}}
	}
	return harness.Launch(p.t, p.dir, cmd)
}

// command runs a command as the test's user and checks that it ends.
func (p *plantedDir) command(args ...string) (text string, code int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), harness.WorkTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, harness.Binary(p.t), args...)
	cmd.Dir = p.dir
	out, errs, code := harness.Run(p.t, cmd)
	if ctx.Err() != nil {
		p.t.Errorf("%v hangs", args)
	}
	return out + errs, code
}

// must runs a command that has to succeed.
func (p *plantedDir) must(args ...string) {
	p.t.Helper()
	if text, code := p.command(args...); code != 0 {
		p.t.Fatalf("%v: exit code %d\n%s", args, code, text)
	}
}

// fresh restores the state directory and the one outside.
func (p *plantedDir) fresh() {
	for _, dir := range []string{p.state, p.away} {
		if err := os.RemoveAll(dir); err != nil {
			p.t.Fatal(err)
		}
		if out, err := exec.Command("cp", "-a", p.good, dir).CombinedOutput(); err != nil {
			p.t.Fatalf("cp: %v\n%s", err, out)
		}
	}
	harness.WriteFile(p.t, filepath.Join(p.away, "victim"), "precious\n")
}

// names returns the names of all that can be in a state directory.
func (p *plantedDir) names() (names []string) {
	err := filepath.WalkDir(p.good, func(path string, _ fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(p.good, path); name != "." {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return append(names, "admin.sock", "lists/blocked/history/.new", "copies/fetched/.fetch-1")
}

// traps are what a test puts in the place of a file or directory.
var traps = []struct {
	kind  string
	plant func(p *plantedDir, path, name string) error
}{
	{"link to what it was, outside", func(p *plantedDir, path, name string) error {
		return os.Symlink(filepath.Join(p.away, name), path)
	}},
	{"link to a file", func(p *plantedDir, path, _ string) error { return os.Symlink(filepath.Join(p.away, "victim"), path) }},
	{"link to nowhere", func(p *plantedDir, path, _ string) error {
		return os.Symlink(filepath.Join(p.away, "nowhere"), path)
	}},
	{"link inside", func(_ *plantedDir, path, _ string) error { return os.Symlink("work", path) }},
	{"named pipe", func(_ *plantedDir, path, _ string) error { return unix.Mkfifo(path, 0o666) }},
	{"directory", func(_ *plantedDir, path, _ string) error { return os.Mkdir(path, 0o700) }},
	{"socket", func(_ *plantedDir, path, _ string) error { return unix.Mknod(path, unix.S_IFSOCK|0o666, 0) }},
	{"device", func(_ *plantedDir, path, _ string) error { return unix.Mknod(path, unix.S_IFCHR|0o666, 0x0105) }}, // /dev/zero
	{"regular file", func(_ *plantedDir, path, _ string) error { return os.WriteFile(path, []byte("{}"), 0o600) }},
}

// plantedCommands are commands that use all that is in a state directory.
var plantedCommands = [][]string{
	{"lists", "add", "more.example", "--list", "blocked", "--reason", "a test"},
	{"lists", "remove", "more.example", "--list", "blocked", "--reason", "a test"},
	{"lists", "accept", "blocked"},
	{"lists", "fetch"},
	{"lists", "rollback", "fetched"},
	{"lists", "rollback", "blocked"},
	{"lists", "status"},
	{"lists", "diff", "fetched"},
	{"lists", "find", "fetched.example"},
	{"lists", "unused", "blocked"},
	{"config", "check"},
	{"check", "x@long0.example"},
}

// sums returns kind, owner, mode and checksum of all that is in a directory.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		all[path] = fmt.Sprint(info.Mode(), st.Uid, st.Gid, st.Nlink, info.ModTime())
		if info.Mode().IsRegular() {
			text, err := os.ReadFile(path)
			all[path] += fmt.Sprintf(" %x", sha256.Sum256(text))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPlanted does what the owner of a state directory can do to harm root: it puts
// links, pipes, directories, sockets and devices in the place of each file and
// directory. Then root runs each command, and the gate's user runs the gate. Nothing
// outside may change, nothing may hang, and what is refused has to be reported. Each
// name gets one of the traps, in turn, and audit.log gets every second one; with
// SPAMGATE_E2E_FULL=1 each name gets all.
func TestPlanted(t *testing.T) {
	t.Parallel()
	p := newPlantedDir(t)
	tried := 0
	for n, name := range p.names() {
		for i, trap := range traps {
			kind := trap.kind
			if os.Getenv(harness.FullEnv) == "" && i != n%len(traps) && (name != "audit.log" || i%2 != 0) || testing.Short() && n%3 != 0 {
				continue // one trap for each name, in turn
			}
			p.fresh()
			path := filepath.Join(p.state, name)
			if info, err := os.Lstat(path); err == nil && (info.IsDir() && kind == "directory" || info.Mode().IsRegular() && kind == "regular file") {
				continue
			}
			err := os.RemoveAll(path)
			if err == nil {
				err = trap.plant(p, path, name)
			}
			if kind == "device" && errors.Is(err, fs.ErrPermission) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if p.root {
				if err := os.Lchown(path, gateUser, gateUser); err != nil {
					t.Fatal(err)
				}
			}
			tried++
			p.try(name, kind)
			if t.Failed() {
				t.Fatalf("with a %s in the place of %s", kind, name)
			}
		}
	}
	t.Logf("%d traps, %d commands and a gate for each", tried, len(plantedCommands))
}

// try runs all commands and a gate with a trap.
func (p *plantedDir) try(name, kind string) {
	p.t.Helper()
	before := sums(p.t, p.away)
	text, err := os.ReadFile(filepath.Join(p.dir, "blocked.txt"))
	if err != nil {
		p.t.Fatal(err)
	}
	message := ""
	for _, args := range plantedCommands {
		out, code := p.command(args...)
		message += fmt.Sprintf("%v, %d: %s\n", args, code, out)
		if strings.Contains(out, "panic:") {
			p.t.Errorf("%v: %s", args, out)
		}
	}
	g := p.serve()
	tried := make(chan struct{})
	defer close(tried)
	select {
	case code := <-g.Exited:
		g.Ended = true
		message += fmt.Sprintf("serve, %d: %s", code, g.Log)
	case <-onceListening(g, tried):
		g.Stop()
		message += g.Log.String()
	case <-time.After(harness.WorkTimeout):
		p.t.Error("the gate neither listens nor ends")
	}
	after := sums(p.t, p.away)
	for path, was := range before {
		if after[path] != was {
			p.t.Errorf("%s was %s and is %s", path, was, after[path])
		}
	}
	for path := range after {
		if before[path] == "" {
			p.t.Errorf("%s was made", path)
		}
	}
	if strings.HasPrefix(kind, "link") && !strings.Contains(message, "symbolic link") && !strings.Contains(message, "not a socket") && !replaced(name) {
		p.t.Errorf("nothing says that there is a link:\n%s", message)
	}
	if p.t.Failed() {
		p.t.Log(message)
	}
	harness.WriteFile(p.t, filepath.Join(p.dir, "blocked.txt"), string(text))
}

// replaced reports whether a trap with that name need not be reported: nobody reads it,
// or it is replaced, or it does no harm.
func replaced(name string) bool {
	base := filepath.Base(name)
	return strings.HasPrefix(base, ".") || base == "current.json" || base == "current.bits" || base == "building" || filepath.Ext(base) == ".zst" || base == "meta.json"
}

// onceListening returns a channel that is closed once a gate listens.
func onceListening(g *harness.Gate, stop <-chan struct{}) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for len(g.Records("listening")) == 0 {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
		close(done)
	}()
	return done
}
