package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// usage is what a command took.
type usage struct{ elapsed, cpu time.Duration }

func (u usage) String() string {
	return fmt.Sprintf("%.2f s (%.2f s of a processor)", u.elapsed.Seconds(), u.cpu.Seconds())
}

// timed runs a command in the working directory.
func (o options) timed(program string, args ...string) (usage, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = o.dir
	started := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return usage{}, fmt.Errorf("%s %v: %w: %s", program, args, err, out)
	}
	return usage{time.Since(started), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// measureEdits runs the commands that change lists and look into them, while no gate
// runs: first on a list of three lines beside the long one, then on the long one, in turn
// with cp and sync of its file.
func (o options) measureEdits() error {
	if err := o.editBeside(""); err != nil {
		return err
	}
	// The index is of the file before the first change.
	if err := o.editLong("long list with its index", 1, "add"); err != nil {
		return err
	}
	if err := o.editLong("long list changed since", 3, "remove", "add"); err != nil {
		return err
	}
	return o.editBeside(", changed since")
}

// editBeside changes a list of three lines beside the long one.
func (o options) editBeside(since string) error {
	listed := asSender(string(generated(nil, o.seed, o.entries/2)))
	for _, c := range []struct {
		what string
		args []string
	}{
		{"lists add, to three lines beside it", []string{"add", "new.example", "--list", "own", "--reason", "test"}},
		{"lists find ADDRESS, listed there", []string{"find", listed}},
		{"lists find ADDRESS, listed beside it", []string{"find", "x@new.example"}},
		{"lists remove, from three lines beside it", []string{"remove", "new.example"}},
	} {
		u, err := o.timed(o.program, append([]string{"lists"}, c.args...)...)
		if err != nil {
			return err
		}
		report(c.what+since, "%v", u)
	}
	return nil
}

// editLong changes the long list, and compares the time with that of a copy. The best of
// the rounds counts.
func (o options) editLong(what string, rounds int, verbs ...string) error {
	best := map[string]usage{}
	note := func(name string, u usage) {
		old, ok := best[name]
		if !ok {
			old = u
		}
		best[name] = usage{min(u.elapsed, old.elapsed), min(u.cpu, old.cpu)}
	}
	for range rounds {
		var copied usage
		for _, args := range [][]string{{"cp", "long.txt", "copy.txt"}, {"sync", "copy.txt"}} {
			u, err := o.timed(args[0], args[1:]...)
			if err != nil {
				return err
			}
			copied = usage{copied.elapsed + u.elapsed, copied.cpu + u.cpu}
		}
		note("copy", copied)
		if err := os.Remove(filepath.Join(o.dir, "copy.txt")); err != nil {
			return err
		}
		for _, verb := range verbs {
			args := []string{"lists", verb, "long-new.example", "--list", "long", "--reason", "test"}
			u, err := o.timed(o.program, args...)
			if err != nil {
				return err
			}
			note(verb, u)
		}
	}
	copied := best["copy"]
	report("cp and sync of the long list", "%v", copied)
	for _, verb := range verbs {
		report("lists "+verb+", "+what, "%v: %.1f times", best[verb], best[verb].elapsed.Seconds()/copied.elapsed.Seconds())
	}
	return nil
}
