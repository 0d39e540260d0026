package listedit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"spamgate/internal/atomicfile"
)

// adder is this test binary as a process that adds entries.
func adder(path, name string, count int) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), adderFile+"="+path, adderName+"="+name, fmt.Sprintf("%s=%d", adderCount, count))
	return cmd
}

// TestConcurrent has goroutines and processes add at once: nothing is lost.
func TestConcurrent(t *testing.T) {
	const goroutines, processes, each = 10, 10, 10
	path := writeFile(t, "# list\n")
	var running sync.WaitGroup
	for g := range goroutines {
		running.Go(func() {
			for i := range each {
				if err := addOne(path, fmt.Sprintf("g%d-%d.example", g, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for p := range processes {
		running.Go(func() {
			var stderr bytes.Buffer
			cmd := adder(path, fmt.Sprintf("p%d", p), each)
			cmd.Stderr = &stderr
			if err := cmd.Run(); err != nil {
				t.Errorf("%v: %s", err, stderr.Bytes())
			}
		})
	}
	running.Wait()
	got := entriesOf(t, path)
	for _, kind := range []string{"g", "p"} {
		for n := range max(goroutines, processes) {
			for i := range each {
				if entry := fmt.Sprintf("%s%d-%d.example", kind, n, i); !got[entry] {
					t.Errorf("%s is lost", entry)
				}
			}
		}
	}
	if len(got) != (goroutines+processes)*each {
		t.Errorf("%d entries", len(got))
	}
	if more := others(t, path); more != nil {
		t.Errorf("left beside it: %q", more)
	}
}

// TestKilled kills a process while it adds, again and again: what it said was
// added is there, no line is broken, and the next edit leaves nothing behind.
func TestKilled(t *testing.T) {
	path := writeFile(t, "# list\n")
	var added []string
	for round := range 30 {
		cmd := adder(path, fmt.Sprintf("k%d", round), 1000)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		for range 1 + rand.IntN(3) {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			added = append(added, strings.TrimSpace(line))
		}
		// At any moment of what it does then.
		for end := time.Now().Add(time.Duration(rand.IntN(2000)) * time.Microsecond); time.Now().Before(end); {
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(lines)
		_ = cmd.Wait()
		added = append(added, strings.Fields(string(rest))...)

		got := entriesOf(t, path)
		for _, entry := range added {
			if !got[entry] {
				t.Fatalf("round %d: %s is lost", round, entry)
			}
		}
		for _, name := range others(t, path) {
			if !strings.HasPrefix(name, ".") {
				t.Errorf("left where a glob finds it: %s", name)
			}
		}
	}
	if err := addOne(path, "last.example"); err != nil {
		t.Fatal(err)
	}
	if more := others(t, path); more != nil {
		t.Errorf("left beside it: %q", more)
	}
}

// TestLeftover removes what a process leaves that is killed at the worst moment.
func TestLeftover(t *testing.T) {
	path := writeFile(t, "# list\n")
	dir, prefix := filepath.Dir(path), (&original{target: path}).leftoverPrefix()
	left, err := atomicfile.Create(dir, prefix+"*"+replacementSuffix, 0o600) // as on a system without unnamed files
	if err != nil {
		t.Fatal(err)
	}
	if _, err := left.WriteString("half"); err != nil {
		t.Fatal(err)
	}
	left.Close()
	if more := others(t, path); len(more) != 1 {
		t.Fatalf("beside it: %q", more)
	}
	if err := addOne(path, "a.example"); err != nil {
		t.Fatal(err)
	}
	if more := others(t, path); more != nil {
		t.Errorf("left beside it: %q", more)
	}
}

// TestWaiting tells that an editor waits for another, and can be called off.
func TestWaiting(t *testing.T) {
	path := writeFile(t, "old\n")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := editText(t.Context(), path, func([]byte) ([]byte, error) {
		_, err := editText(ctx, path, replaceBy("theirs\n"), Options{Waiting: cancel})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		return []byte("new\n"), nil
	}, Options{})
	if err != nil {
		t.Error(err)
	}
	if got := readFile(t, path); got != "new\n" {
		t.Errorf("the file holds %q", got)
	}
}
