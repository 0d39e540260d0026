package rcs

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// made returns the script of two texts, and fails the test if it does not make the new one.
func made(t *testing.T, old, new string) string {
	t.Helper()
	script, err := Diff(strings.NewReader(old), strings.NewReader(new), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if got := applied(t, old, string(script)); got != new {
		t.Fatalf("%q made of %q by\n%s", got, old, script)
	}
	return string(script)
}

func applied(t *testing.T, old, script string) string {
	t.Helper()
	var out strings.Builder
	if err := Apply(&out, strings.NewReader(old), strings.NewReader(script), 1<<30); err != nil {
		t.Fatalf("%v: %q by\n%s", err, old, script)
	}
	return out.String()
}

func lines(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "user%d@example.net\n", i)
	}
	return b.String()
}

func TestDiff(t *testing.T) {
	list := lines(0, 5000)
	for name, c := range map[string]struct{ old, new, script string }{
		"both empty":           {"", "", ""},
		"the same":             {list, list, ""},
		"to nothing":           {"a\nb\n", "", "d1 2\n"},
		"from nothing":         {"", "a\nb\n", "a0 2\na\nb\n"},
		"at the end":           {list, list + "new\n", "a5000 1\nnew\n"},
		"at the beginning":     {list, "new\n" + list, "a0 1\nnew\n"},
		"in the middle":        {list, lines(0, 2000) + "new\n" + lines(2000, 5000), "a2000 1\nnew\n"},
		"changed":              {"a\nb\nc\nd\n", "a\nx\ny\nd\n", "d2 2\na3 2\nx\ny\n"},
		"one is missing":       {list, lines(0, 2000) + lines(2001, 5000), "d2001 1\n"},
		"a thousand":           {list, lines(0, 2000) + lines(3000, 5000), "d2001 1000\n"},
		"beyond all windows":   {lines(0, 200000), lines(0, 5) + lines(70000, 200000), ""},
		"many at the end":      {list, list + lines(6000, 6100), "a5000 100\n" + lines(6000, 6100)},
		"all the same":         {strings.Repeat("a\n", 900), strings.Repeat("a\n", 901), "a900 1\na\n"},
		"empty lines":          {strings.Repeat("\n", 90), strings.Repeat("\n", 80), "d81 10\n"},
		"between the same":     {"a\n#\nb\n#\nc\n", "a\n#\nx\n#\nc\n", "d3 1\na3 1\nx\n"},
		"carriage returns":     {"a\r\nb\n", "a\nb\r\n", ""},
		"zero bytes":           {"\x00\n\x00\x00\n", "\x00\x00\n\x00\n", ""},
		"what looks a command": {"d1 1\n", "a1 1\nd1 1\n", "a0 1\na1 1\n"},
	} {
		if script := made(t, c.old, c.new); c.script != "" && script != c.script {
			t.Errorf("%s: %.200q, want %.200q", name, script, c.script)
		}
	}
}

// TestRandomChanges wants of random changes no more than what changed, and of scripts by GNU diff
// what it means with them.
func TestRandomChanges(t *testing.T) {
	program, err := exec.LookPath("diff")
	if err != nil {
		t.Fatal("this test needs diff, of diffutils:", err)
	}
	dir := t.TempDir()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		old := strings.SplitAfter(lines(0, 1+r.IntN(3000)), "\n")
		old = old[:len(old)-1]
		if seed%3 == 0 { // many lines that repeat
			for i := range old {
				old[i] = fmt.Sprintf("%d\n", r.IntN(40))
			}
		}
		current, changed := slices.Clone(old), 0
		for range r.IntN(60) {
			pos, n := r.IntN(len(current)+1), 1+r.IntN(30)
			switch r.IntN(3) {
			case 0:
				current = slices.Delete(current, pos, min(len(current), pos+n))
			case 1:
				current = slices.Insert(current, pos, strings.SplitAfter(lines(1e6+int(seed), 1e6+int(seed)+n-1)+"x\n", "\n")[:n]...)
				changed += n
			case 2:
				if pos < len(current) {
					current[pos] = fmt.Sprintf("changed%d@example.net\n", r.Int())
					changed++
				}
			}
		}
		a, b := strings.Join(old, ""), strings.Join(current, "")
		if script := made(t, a, b); seed%3 != 0 && len(script) > (changed+120)*40 {
			t.Errorf("seed %d: %d bytes for %d changed lines", seed, len(script), changed)
		}
		pa, pb := filepath.Join(dir, "a"), filepath.Join(dir, "b")
		if err := errors.Join(os.WriteFile(pa, []byte(a), 0o600), os.WriteFile(pb, []byte(b), 0o600)); err != nil {
			t.Fatal(err)
		}
		script, err := exec.Command(program, "-n", pa, pb).Output()
		if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
			t.Fatal(err)
		}
		if applied(t, a, string(script)) != b {
			t.Errorf("seed %d: another text by the script of GNU diff", seed)
		}
	}
}

func TestNoScript(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		want     error
	}{
		"no end":       {"a\nb", "a\n", ErrLines},
		"no new end":   {"a\n", "a\nb", ErrLines},
		"long":         {"a\n", strings.Repeat("x", maxLine) + "\n", ErrLines},
		"much changed": {lines(0, 100), lines(200, 300), ErrLarge},
		"long lines":   {strings.Repeat(strings.Repeat("x", maxLine-1)+"\n", 2*maxAhead/maxLine), "a\n", nil},
	} {
		if _, err := Diff(strings.NewReader(c.old), strings.NewReader(c.new), 1000); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := errors.New("broken")
	if _, err := Diff(strings.NewReader("a\n"), iotest.ErrReader(broken), 1000); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestHostile has scripts from anywhere.
func TestHostile(t *testing.T) {
	for script, want := range map[string]error{
		"d1 1\n": nil, "a0 1\nx\n": nil, "a3 1\nx\n": nil, "d1 3\na3 1\nx": nil, "": nil, "a1 1\nx\na1 1\ny\n": nil,
		"x": ErrDamaged, "\n": ErrDamaged, "d0 1\n": ErrDamaged, "d1 0\n": ErrDamaged, "d1 -1\n": ErrDamaged, "a-1 1\nx\n": ErrDamaged,
		"d1\n": ErrDamaged, "d1 1 1\n": ErrDamaged, "d4 1\n": ErrDamaged, "a4 1\nx\n": ErrDamaged, "d1 4\n": ErrDamaged, "d2 1\nd1 1\n": ErrDamaged,
		"a1 2\nx\n": ErrDamaged, "d1 1\na0 1\nx\n": ErrDamaged, "a1 99999999999999999999\nx\n": ErrDamaged, "c1 1\nx\n": ErrDamaged,
		"a0 1\n" + strings.Repeat("x", 100) + "\n": ErrLarge,
	} {
		var out bytes.Buffer
		err := Apply(&out, strings.NewReader("a\nb\nc\n"), strings.NewReader(script), 20)
		if !errors.Is(err, want) || out.Len() > 20 {
			t.Errorf("%q: %v, %d bytes", script, err, out.Len())
		}
	}
	broken := errors.New("broken")
	for i := range "a1 1\nx\n" {
		script := io.MultiReader(strings.NewReader("a1 1\nx\n"[:i]), iotest.ErrReader(broken))
		if err := Apply(io.Discard, strings.NewReader("a\n"), script, 20); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", i, err)
		}
	}
	if err := Apply(io.Discard, iotest.ErrReader(broken), strings.NewReader("d1 1\n"), 20); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestPatch has what https://github.com/ameshkov/diffupdates shows.
func TestPatch(t *testing.T) {
	const old = "! Title: a list\n! Version: v1.0.0\n! Diff-Path: patches/v1.0.0-m-28334060-60.patch\n||example.org^\n"
	const now = "! Title: a list\n! Version: v1.0.1\n! Diff-Path: patches/v1.0.1-m-28334120-60.patch#list\n||example.com^\n"
	script := made(t, old, now)
	patch := Patch("list", []byte(script), sha1.Sum([]byte(now)))
	want := fmt.Sprintf("diff name:list checksum:%x lines:5\nd2 3\na4 3\n! Version: v1.0.1\n", sha1.Sum([]byte(now)))
	if !strings.HasPrefix(string(patch), want) {
		t.Errorf("%s, want\n%s", patch, want)
	}
	for _, text := range []string{string(patch), script} {
		in, err := Script(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(in); string(got) != script {
			t.Errorf("the script is %q", got)
		}
	}
	if _, err := Script(strings.NewReader("diff name:list")); err == nil {
		t.Error("a patch without a script")
	}
	for text, want := range map[string]string{
		old: "patches/v1.0.0-m-28334060-60.patch", now: "patches/v1.0.1-m-28334120-60.patch#list",
		"# list blocked\n# Diff-Path: a/b\n": "a/b", "#Diff-Path: a\n": "", "!diff-path:a\r\n": "a", "": "", "a ! Diff-Path: b\n": "",
		strings.Repeat("#\n", maxHead/2) + "! Diff-Path: a\n": "",
	} {
		if got := Path(strings.NewReader(text)); got != want {
			t.Errorf("%.50q: %q", text, got)
		}
	}
}

func FuzzDiff(f *testing.F) {
	f.Add("", "")
	f.Add("a\nb\nc\n", "a\nc\nd\n")
	f.Add(lines(0, 40), lines(5, 25))
	f.Fuzz(func(t *testing.T, old, new string) {
		if script, err := Diff(strings.NewReader(old), strings.NewReader(new), 1<<20); err == nil && applied(t, old, string(script)) != new {
			t.Errorf("another text, by\n%s", script)
		}
	})
}

// FuzzApply wants no more written than is allowed.
func FuzzApply(f *testing.F) {
	f.Add("d1 3\na7 1\nx\n")
	f.Fuzz(func(t *testing.T, script string) {
		var out bytes.Buffer
		if err := Apply(&out, strings.NewReader(lines(0, 20)), strings.NewReader(script), 500); out.Len() > 500 || err == nil && out.Len() > 500 {
			t.Errorf("%d bytes written", out.Len())
		}
	})
}

// TestLarge measures changed lines of SPAMGATE_DIFF_LINES: one of a hundred, at most 100,000.
func TestLarge(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("SPAMGATE_DIFF_LINES"))
	if n == 0 {
		t.Skip("SPAMGATE_DIFF_LINES is not set")
	}
	text := func(changed bool) *bytes.Reader {
		r, change := rand.New(rand.NewPCG(2, 2)), rand.New(rand.NewPCG(1, 1))
		var b bytes.Buffer
		for range n {
			id, host := r.Uint64(), r.IntN(100000)
			if changed && change.IntN(max(100, n/100_000)) == 0 {
				host = 100000
			}
			fmt.Fprintf(&b, "%x@example%d.net\n", id, host)
		}
		return bytes.NewReader(b.Bytes())
	}
	old, reader := text(false), text(true)
	start := time.Now()
	script, err := Diff(old, reader, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	wrote := time.Since(start)
	start = time.Now()
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if err := Apply(io.Discard, old, bytes.NewReader(script), 1<<40); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d lines, %d bytes: a script of %d bytes; written in %v, applied in %v", n, reader.Size(), len(script), wrote, time.Since(start))
}
