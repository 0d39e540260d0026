package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const code = `package sum

func Sum(a, b int) int { return a + b }

func Double(a int) int { return 2 * a }

func Wait(a int) { for a < 0 { } }

type pair[T any] struct{ a, b T }

func (p pair[T]) Swap(_ string, more ...T) (q pair[T], n int) {
	q.a, q.b = p.b, p.a
	return q, len(more)
}

func Least[T int | string](a, b T, _ ...bool) T { return min(a, b) }

func (pair[T]) Size(int) int { return 2 }

var names = []string{"sum", "double"}

const limit = 3
`

const codeTest = `package sum

import (
	"os"
	"os/exec"
	"testing"
)

func TestSum(t *testing.T) {
	t.Run("two", func(t *testing.T) {
		if Sum(1, 2) != 3 { t.Error("wrong") }
	})
}

func TestDouble(t *testing.T) { Double(0) }

func TestSwap(t *testing.T) {
	if q, n := (pair[int]{1, 2}).Swap("", 5, 6); q.a != 2 || q.b != 1 || n != 2 { t.Error(q, n) }
	if q, n := (pair[string]{"a", "b"}).Swap(""); q.a != "b" || n != 0 { t.Error(q, n) }
}

func TestLeast(t *testing.T) {
	if Least(1, 2, true) != 1 || Least("b", "a") != "a" { t.Error("wrong") }
}

func TestSize(t *testing.T) { if (pair[int]{}).Size(0) != 2 { t.Error("wrong") } }

func TestNames(t *testing.T) { if names[0] != "sum" { t.Error(names) } }

// TestChild has an environment without the switch.
func TestChild(t *testing.T) {
	if len(os.Args) > 1 && os.Args[len(os.Args)-1] == "child" {
		os.Exit(Sum(1, 2))
	}
	child := exec.Command("/bin/sh", "-c", os.Args[0]+" -test.run=TestChild child; exit $?")
	child.Env = []string{"A=b"}
	child.Run()
	if code := child.ProcessState.ExitCode(); code != 3 { t.Error(code) }
}

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

name: unused
harm: none
file: sum.go
test: -run TestSum .
-return a + b
+c := a; return a + b

name: swap
harm: generic methods with variadic parameters and blank ones
file: sum.go
test: -run TestSwap .
-p.b, p.a
+p.a, p.b

name: least
harm: generic functions
file: sum.go
test: -run TestLeast .
-min(a, b)
+max(a, b)

name: size
harm: receivers and parameters without names
file: sum.go
test: -run TestSize .
-return 2 }
+return 3 }

name: names
harm: variables of a package
file: sum.go
test: -run TestNames .
-"sum", "double"
+"double", "sum"

name: limit
harm: a constant, which cannot be switched
file: sum.go
test: -run TestSum .
-limit = 3
+limit = 4

name: child
harm: the tests run it in a process with another environment
file: sum.go
test: -run TestChild .
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
		{"caught", "sum", ". TestSum/two"},
		{"SURVIVED", "double", "doubles are wrong"},
		{"DOES NOT APPLY", "gone", "sum.go has the old text 0 times"},
		{"DOES NOT APPLY", "twice", "sum.go has the old text 5 times"},
		{"DOES NOT BUILD", "syntax", "sum.go"},
		{"NO TEST", "broken-test", "fails without the bug: TestBroken"},
		{"NO TEST", "no-test", "no tests to run"},
		{"DOES NOT BUILD", "unused", "declared and not used: c"},
		{"caught", "swap", "TestSwap"},
		{"caught", "least", "TestLeast"},
		{"caught", "size", "TestSize"},
		{"caught", "names", "TestNames"},
		{"DOES NOT BUILD", "limit", "not within a function"},
		{"caught", "child", "TestChild"},
		{"caught", "hang", "timed out: TestWait"},
	}
	lines := strings.Split(out.String(), "\n")
	for _, w := range want {
		if !slices.ContainsFunc(lines, func(line string) bool {
			return strings.HasPrefix(line, w.outcome) && strings.Contains(line, " "+w.name+" ") && strings.Contains(line, w.why)
		}) {
			t.Errorf("no line %v", w)
		}
	}
	for _, sum := range []string{
		"10 bugs built in",
		": 7 caught, 1 survived, 2 do not apply, 3 do not build, 2 without tests that pass",
	} {
		if !strings.Contains(out.String(), sum) {
			t.Errorf("%s has no %q", &out, sum)
		}
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
		{[]string{"-only", "sum"}, 0, ": 1 caught"},
		{[]string{"-list", "-only", "double"}, 0, "doubles are wrong"},
		{[]string{"-only", "other"}, 2, `no bug with "other" in its name`},
		{[]string{"-bugs", "gone.txt"}, 2, "gone.txt"},
		{[]string{"-list", "-only", "sum", "-part", "1/2"}, 0, "sum"},
		{[]string{"-part", "3/2"}, 2, "from 1/4 to 4/4"},
		{[]string{"-part", "half"}, 2, "from 1/4 to 4/4"},
	} {
		var out bytes.Buffer
		if status := run(tt.args, &out, &out); status != tt.status || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%v: status %d: %s", tt.args, status, &out)
		}
	}
}

// TestPart has each bug in one of the parts.
func TestPart(t *testing.T) {
	var bugs []bug
	for _, name := range strings.Fields("a b c d e f g") {
		bugs = append(bugs, bug{Name: name})
	}
	var parts []string
	for _, part := range []string{"1/3", "2/3", "3/3"} {
		some, err := partOf(bugs, part)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range some {
			parts = append(parts, b.Name)
		}
	}
	if got := strings.Join(parts, ""); got != "adgbecf" {
		t.Errorf("the parts are %s", got)
	}
}

// TestWorlds passes the number of worlds on.
func TestWorlds(t *testing.T) {
	var b bug
	if err := b.setTest(strings.Fields("./w -world.n=7 -run ^TestA$")); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(b.flags("test."), " "); got != "-test.failfast -test.run=^TestA$ -world.n=7 -world.shrink=1s" {
		t.Error(got)
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
	gaps, err := load("gaps.txt", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range append(bugs, gaps...) {
		text, err := os.ReadFile(filepath.Join("..", "..", b.File))
		if n := strings.Count(string(text), b.Old); err != nil || n != 1 {
			t.Errorf("%s: %s has its old text %d times (%v)", b.Name, b.File, n, err)
		}
	}
}
