package harness

import (
	"bufio"
	"fmt"
	"os/exec"
	"testing"
)

// StartLines starts a program that answers each line of its input with a line, until the end
// of the test, and returns a function that asks it.
func StartLines(t testing.TB, name string, cmd *exec.Cmd) (ask func(line string) string) {
	t.Helper()
	cmd.Stderr = NewOutput(t, name)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait() // its end is no matter
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	return func(line string) string {
		t.Helper()
		fmt.Fprintln(in, line)
		if !lines.Scan() {
			t.Fatalf("no answer about %.500s: %v", line, lines.Err())
		}
		return lines.Text()
	}
}
