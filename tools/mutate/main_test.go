package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const code = `package sum

func Sum(a, b int) int { return a + b }

func Double(a int) int { return 2 * a }

func Wait(a int) { for a < 0 { } }
`

const codeTest = `package sum

import "testing"

func TestSum(t *testing.T) {
	t.Run("two", func(t *testing.T) {
		if Sum(1, 2) != 3 { t.Error("wrong") }
	})
}

func TestDouble(t *testing.T) { Double(0) }

func TestBroken(t *testing.T) { t.Error("always") }

func TestWait(t *testing.T) { Wait(1) }
`

const planted = `# a comment
name: sum
harm: sums are wrong
file: sum.go
test: -run TestSum .
-a + b
+a - b

name: double
harm: doubles are wrong
file: sum.go
test: -run TestDouble .
# the test asks for 0
-return 2 * a
+return 3 * a

name: gone
harm: none
file: sum.go
test: -run TestSum .
-a * b
+a / b

name: twice
harm: none
file: sum.go
test: -run TestSum .
-return
+

name: syntax
harm: none
file: sum.go
test: -run TestSum .
-func Double(a int) int { return 2 * a }
-
+func Double(

name: broken-test
harm: none
file: sum.go
test: -run TestBroken .
-a + b
+a - b

name: no-test
harm: none
file: sum.go
test: -run TestNothing .
-a + b
+a - b

name: hang
harm: it never ends
file: sum.go
test: -run TestWait .
-a < 0
+a > 0
`

// module makes a repository with a module and goes there.
func module(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module sum\n\ngo 1.26.0\n", "sum.go": code, "sum_test.go": codeTest, "bugs.txt": planted, "ignored.go": "not Go", ".gitignore": "ignored.go\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	if out, err := exec.Command("git", "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestPlant plants bugs of every fate, and leaves the checkout as it was.
func TestPlant(t *testing.T) {
	module(t)
	var out, errs bytes.Buffer
	if status := run([]string{"-limit", "5s"}, &out, &errs); status != 1 || errs.Len() > 0 {
		t.Fatalf("status %d\n%s%s", status, &out, &errs)
	}
	want := []struct{ outcome, name, why string }{
		{"caught", "sum", "TestSum/two"},
		{"SURVIVED", "double", "doubles are wrong"},
		{"DOES NOT APPLY", "gone", "sum.go has the old text 0 times"},
		{"DOES NOT APPLY", "twice", "sum.go has the old text 2 times"},
		{"DOES NOT BUILD", "syntax", "sum.go"},
		{"NO TEST", "broken-test", "fails without the bug: TestBroken"},
		{"NO TEST", "no-test", "no tests to run"},
		{"caught", "hang", "timed out"},
	}
	lines := strings.Split(out.String(), "\n")
	for i, w := range want {
		if !strings.HasPrefix(lines[i], w.outcome) || !strings.Contains(lines[i], " "+w.name+" ") || !strings.Contains(lines[i], w.why) {
			t.Errorf("%q, want %v", lines[i], w)
		}
	}
	if sum := "8 bugs: 2 caught, 1 survived, 2 do not apply, 1 do not build, 2 without tests that pass"; !strings.Contains(out.String(), sum) {
		t.Errorf("%s has no %q", &out, sum)
	}
	if now, err := os.ReadFile("sum.go"); err != nil || string(now) != code {
		t.Errorf("the checkout was changed: %s, %v", now, err)
	}
}

// TestChoice plants or lists those that are asked for.
func TestChoice(t *testing.T) {
	module(t)
	for _, tt := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"-only", "sum"}, 0, "1 bugs: 1 caught"},
		{[]string{"-list", "-only", "double"}, 0, "doubles are wrong"},
		{[]string{"-only", "other"}, 2, `no bug with "other" in its name`},
		{[]string{"-bugs", "gone.txt"}, 2, "gone.txt"},
	} {
		var out bytes.Buffer
		if status := run(tt.args, &out, &out); status != tt.status || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%v: status %d: %s", tt.args, status, &out)
		}
	}
}

// TestBadBugs: a data file that says too little, or something else.
func TestBadBugs(t *testing.T) {
	const good = "name: a\nharm: b\nfile: c\ntest: d\n-e\n+f\n"
	for _, tt := range []struct{ text, want string }{
		{strings.Replace(good, "harm: b\n", "", 1), `line 1: "a" needs name, harm`},
		{strings.Replace(good, "+f", "+e", 1), `line 1: "a" changes nothing`},
		{good + "\n\n" + good, `line 9: the name "a" is already used in line 1`},
		{"# x\n" + good + "what\n", `line 8: "what": a line begins with`},
	} {
		if _, err := readBugs(strings.NewReader(tt.text)); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

// TestBugsAreGood reads the bugs of the repository, each of which must still apply.
func TestBugsAreGood(t *testing.T) {
	bugs, err := load("bugs.txt", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bugs {
		text, err := os.ReadFile(filepath.Join("..", "..", b.File))
		if n := strings.Count(string(text), b.Old); err != nil || n != 1 {
			t.Errorf("%s: %s has its old text %d times (%v)", b.Name, b.File, n, err)
		}
	}
}
