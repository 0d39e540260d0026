package publish

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"

	"spamgate/internal/rcs"
)

// fixture is a list that is published.
type fixture struct {
	List
	now time.Time
}

func newFixture(t *testing.T) *fixture {
	key, err := NewKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{List{Dir: t.TempDir(), Name: "blocked.txt", Key: key, Expires: 24 * time.Hour, Patches: true}, time.Unix(1_800_000_000, 0)}
}

// publish publishes a text, and checks what the files say.
func (x *fixture) publish(t *testing.T, text, what string) Result {
	t.Helper()
	r, err := x.Publish(x.now, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	if err != nil {
		t.Fatal(err)
	}
	whole, signature := x.read(t, "blocked.txt"), x.read(t, "blocked.txt.minisig")
	if r.What != what || r.Bytes != int64(len(whole)) {
		t.Errorf("%s, %d bytes; want %s, %d", r.What, r.Bytes, what, len(whole))
	}
	v, err := x.published()
	if err != nil || !v.good || v.says.Sequence != r.Sequence || v.sum != r.SHA256 {
		t.Errorf("%+v, %v", v, err)
	}
	if whole != x.head(v.patch)+text || signature != string(r.Signature) {
		t.Error("the files are not those of the result")
	}
	if !minisign.Verify(x.Key.Public(), []byte(whole), []byte(signature)) {
		t.Error("the signature is not good")
	}
	return r
}

func (x *fixture) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(x.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// versions returns texts of a list that grows.
func versions(n int) []string {
	text := ""
	for i := range 200 {
		text += fmt.Sprintf("user%d@example.net\n", i)
	}
	var all []string
	for i := range n {
		text += fmt.Sprintf("new%d@example.net\n", i)
		all = append(all, text)
	}
	return all
}

func TestPublish(t *testing.T) {
	x := newFixture(t)
	v := versions(3)
	first := x.publish(t, v[0], Written)
	if first.Sequence != x.now.Unix() || !first.Expires.Equal(x.now.Add(24*time.Hour)) || first.Patch != 0 {
		t.Errorf("%+v", first)
	}
	want := fmt.Sprintf("timestamp:1800000000\tfile:blocked.txt\thashed\tsequence:1800000000\texpires:1800086400\tsha256:%s\n", first.SHA256)
	if !strings.Contains(x.read(t, "blocked.txt.minisig"), want) {
		t.Errorf("the signature is\n%s", x.read(t, "blocked.txt.minisig"))
	}
	if r := x.publish(t, v[0], Unchanged); r.Sequence != first.Sequence {
		t.Errorf("%+v", r)
	}
	x.now = x.now.Add(13 * time.Hour)
	if r := x.publish(t, v[0], Signed); r.Sequence != first.Sequence || !r.Expires.Equal(x.now.Add(24*time.Hour)) {
		t.Errorf("%+v", r)
	}
	x.now = x.now.Add(-20 * time.Hour) // the clock was put right
	r := x.publish(t, v[1], Written)
	if r.Sequence != first.Sequence+1 || r.Signed.Unix() != 1_800_000_000+13*3600 || r.Patch == 0 {
		t.Errorf("%+v", r)
	}
	x.publish(t, v[2], Written)
	if x.read(t, "blocked.txt") != x.head("1800000002-s-1799974800-3600.patch")+v[2] {
		t.Error(x.read(t, "blocked.txt"))
	}
	text := x.head("1800000000-s-1800000000-3600.patch") + v[0]
	for i, want := range v[1:] {
		patch := x.read(t, "blocked.txt.patches/"+[]string{"1800000000-s-1800000000", "1800000001-s-1799974800"}[i]+"-3600.patch")
		script, err := rcs.Script(strings.NewReader(patch))
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := rcs.Apply(&out, strings.NewReader(text), script, 1<<20); err != nil || !strings.HasSuffix(out.String(), want) {
			t.Fatalf("%v, or another version", err)
		}
		if text = out.String(); !strings.HasPrefix(patch, fmt.Sprintf("diff name:list checksum:%x lines:", sha1.Sum([]byte(text)))) {
			t.Errorf("the patch is\n%s", patch)
		}
	}
	if text != x.read(t, "blocked.txt") {
		t.Error("the patches make another text")
	}
	if r := x.publish(t, v[0], Written); r.Sequence != first.Sequence+3 {
		t.Errorf("back to the first version: %+v", r)
	}
	x.Expires = 0
	if r := x.publish(t, v[0], Signed); !r.Expires.IsZero() {
		t.Errorf("for ever: %+v", r)
	}
	x.publish(t, v[0], Unchanged)
	if left, _ := filepath.Glob(filepath.Join(x.Dir, ".*")); left != nil {
		t.Errorf("left: %s", left)
	}
}

// TestAnotherKey publishes an unchanged list with another key: it is signed again, and a gate that
// has the old key alone sees that at once.
func TestAnotherKey(t *testing.T) {
	x := newFixture(t)
	first := x.publish(t, "spam.example\n", Written)
	old := x.Key
	x.Key = newFixture(t).Key
	if r := x.publish(t, "spam.example\n", Signed); r.Sequence != first.Sequence {
		t.Errorf("%+v", r)
	}
	if minisign.Verify(old.Public(), []byte(x.read(t, "blocked.txt")), []byte(x.read(t, "blocked.txt.minisig"))) {
		t.Error("the signature is by the old key")
	}
	x.publish(t, "spam.example\n", Unchanged)
}

// TestBrokenDirectory has what a crash or somebody else may leave.
func TestBrokenDirectory(t *testing.T) {
	v := versions(2)
	for name, c := range map[string]struct {
		change func(t *testing.T, x *fixture)
		next   int64 // what the sequence number becomes, relative to the first
	}{
		"as it was":             {func(t *testing.T, x *fixture) {}, 1},
		"no signature":          {func(t *testing.T, x *fixture) { remove(t, x, "blocked.txt.minisig") }, 3600},
		"a damaged signature":   {func(t *testing.T, x *fixture) { write(t, x, "blocked.txt.minisig", "x") }, 3600},
		"no list":               {func(t *testing.T, x *fixture) { remove(t, x, "blocked.txt") }, 1},
		"no patches":            {func(t *testing.T, x *fixture) { remove(t, x, "blocked.txt.patches") }, 1},
		"of an older release":   {func(t *testing.T, x *fixture) { x.Patches = false; x.publish(t, v[0]+v[0], Written); x.Patches = true }, 2},
		"a head of somebody":    {func(t *testing.T, x *fixture) { write(t, x, "blocked.txt", "# Diff-Path: ../x.patch\n"+v[1]) }, 1},
		"list without its sign": {func(t *testing.T, x *fixture) { write(t, x, "blocked.txt", v[1]) }, 1},
		"another list":          {func(t *testing.T, x *fixture) { write(t, x, "blocked.txt", "x") }, 1},
		"another key": {func(t *testing.T, x *fixture) {
			var err error
			if x.Key, err = NewKey(filepath.Join(t.TempDir(), "key")); err != nil {
				t.Fatal(err)
			}
		}, 1},
		"a hostile number": {func(t *testing.T, x *fixture) {
			r := minisign.NewReader(strings.NewReader("x"))
			write(t, x, "blocked.txt.minisig", string(x.Key.sign(r, Comment{File: "blocked.txt", Sequence: 1<<63 - 1})))
		}, 3600},
	} {
		t.Run(name, func(t *testing.T) {
			x := newFixture(t)
			first := x.publish(t, v[0], Written)
			c.change(t, x)
			x.now = x.now.Add(time.Hour)
			what := Written
			if name == "list without its sign" {
				what = Signed
			}
			if r := x.publish(t, v[1], what); r.Sequence != first.Sequence+c.next {
				t.Errorf("sequence %d after %d", r.Sequence, first.Sequence)
			}
		})
	}
}

func remove(t *testing.T, x *fixture, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(x.Dir, name)); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, x *fixture, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(x.Dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPrune wants the newest patches kept: not more than 32, nor than the list has bytes.
func TestPrune(t *testing.T) {
	x := newFixture(t)
	long, aged := time.Now().Add(-time.Hour), map[string]bool{}
	for i, text := range versions(maxPatches + 5) {
		x.publish(t, text, Written)
		for name := range x.patches(t) { // the times of files are coarse
			if aged[name] {
				continue
			}
			aged[name] = true
			instant := long.Add(time.Duration(i) * time.Second)
			if err := os.Chtimes(filepath.Join(x.Dir, x.patchPath(name)), instant, instant); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := versions(maxPatches + 5)
	sum, kept := int64(0), x.patches(t)
	for _, size := range kept {
		sum += size
	}
	if len(kept) > maxPatches || len(kept) < 5 || sum > int64(len(all[len(all)-1])) {
		t.Errorf("%d patches, %d bytes", len(kept), sum)
	}
	if kept[fmt.Sprintf("%d-s-1800000000-3600.patch", 1_800_000_000+len(all)-2)] == 0 || kept["1800000000-s-1800000000-3600.patch"] != 0 {
		t.Error("not the newest are left")
	}
}

// patches returns the sizes of the patches by their names.
func (x *fixture) patches(t *testing.T) map[string]int64 {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(x.Dir, x.Name+patchesSuffix))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = info.Size()
	}
	return found
}

// TestFailed wants the version before to remain.
func TestFailed(t *testing.T) {
	x := newFixture(t)
	x.publish(t, "a.example\n", Written)
	broken := errors.New("broken")
	if _, err := x.Publish(x.now, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	x.publish(t, "a.example\n", Unchanged)
}

func TestCheckName(t *testing.T) {
	for name, good := range map[string]bool{
		"blocked.txt": true, "blocked": true, "a b.txt": true, "": false, ".": false, "..": false, "a/b": false, ".hidden": false,
		"a\tb": false, "blocked.txt.minisig": false, "blocked.txt.patches": false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestReadKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	made, err := NewKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if key, err := ReadKey(path); err != nil || key.Public().String() != made.Public().String() {
		t.Errorf("%v, or another key", err)
	}
	if _, err := NewKey(path); err == nil || !strings.Contains(err.Error(), "never replaced") {
		t.Error(err)
	}
	encrypted, err := os.ReadFile("testdata/password.key")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"readable":  {"", 0o640, "run chmod 600"},
		"writable":  {"", 0o602, "run chmod 600"},
		"no key":    {"x", 0o600, "not a secret key"},
		"empty":     {"", 0o600, "not a secret key"},
		"public":    {made.Public().String(), 0o600, "not a secret key"},
		"encrypted": {string(encrypted), 0o600, "has a password"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.WriteFile(path, []byte(c.text), 0o600), os.Chmod(path, c.mode)); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadKey(path); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
	if _, err := ReadKey(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "--new-key") {
		t.Error(err)
	}
	if _, err := ReadKey(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

// TestMinisignKey reads a key that minisign 0.11 made with -G -W.
func TestMinisignKey(t *testing.T) {
	text, err := os.ReadFile("testdata/minisign.key")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile("testdata/minisign.pub")
	if err != nil {
		t.Fatal(err)
	}
	if key, err := ReadKey(path); err != nil || !strings.Contains(string(public), key.Public().String()) {
		t.Errorf("%v, key %s, want that of\n%s", err, key.Public(), public)
	}
}

// TestRealMinisign has minisign verify what is published, and sign with a key from here.
func TestRealMinisign(t *testing.T) {
	program, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip(err)
	}
	x := newFixture(t)
	x.publish(t, versions(1)[0], Written)
	list := filepath.Join(x.Dir, x.Name)
	out, err := exec.Command(program, "-V", "-P", x.Key.Public().String(), "-m", list).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "sequence:1800000000") {
		t.Errorf("%v: %s", err, out)
	}
	path := filepath.Join(t.TempDir(), "key")
	key, err := NewKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "-S", "-s", path, "-m", list).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !minisign.Verify(key.Public(), []byte(x.read(t, x.Name)), []byte(x.read(t, x.Name+signatureSuffix))) {
		t.Error("what minisign signed with this key is not good")
	}
}

// FuzzReadComment checks that a comment that was written is read as it was.
func FuzzReadComment(f *testing.F) {
	f.Add("timestamp:1\tfile:a\thashed\tsequence:2\texpires:3\tsha256:aa")
	f.Fuzz(func(t *testing.T, text string) {
		c := readComment(text)
		if c.Timestamp < 0 || c.Sequence < 0 || c.Expires < 0 {
			t.Errorf("%+v", c)
		}
		if again := readComment(c.String()); again != c {
			t.Errorf("%+v, then %+v", c, again)
		}
	})
}
