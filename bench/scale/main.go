// Command scale measures the gate with long generated lists: loading from text,
// memory, a restart with unchanged lists, one changed line, edits compared with a copy,
// lookups, and spamgate check compared with postmap. docs/scale.md explains the figures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

func main() {
	var o options
	flag.Uint64Var(&o.entries, "entries", 10_000_000, "the long list's entries")
	flag.Uint64Var(&o.seed, "seed", 1, "makes another list")
	flag.StringVar(&o.kind, "kind", "auto", "the `KIND` of the filter")
	flag.StringVar(&o.dir, "dir", "", "where to work, kept afterwards (default: a temporary directory)")
	flag.StringVar(&o.program, "program", "", "the spamgate to measure (default: built now)")
	flag.BoolVar(&o.postmap, "postmap", false, "compare with postmap, which has to be installed")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(2)
	}
}

type options struct {
	entries, seed      uint64
	kind, dir, program string
	postmap            bool
}

// shortEntries is the length of the list that changes during the run.
const shortEntries = 100_000

func run(ctx context.Context, o options) (err error) {
	if o.entries == 0 || flag.NArg() > 0 {
		return errors.New("use --entries 1 or more, and no arguments")
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "spamgate-scale-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	} else if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	if o.program == "" {
		o.program = filepath.Join(o.dir, "spamgate")
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", o.program, "spamgate/cmd/spamgate").CombinedOutput(); err != nil {
			return fmt.Errorf("building spamgate: %w: %s", err, out)
		}
	}
	if err := o.prepare(); err != nil {
		return err
	}
	if err := o.measureGate(); err != nil {
		return err
	}
	clean, hit, err := lookups(ctx, o.dir, o.kind, o.seed, o.entries)
	if err != nil {
		return err
	}
	report("a clean three-label sender, all its keys", "%d ns", clean.Nanoseconds())
	report("a listed sender, confirmed", "%d ns", hit.Nanoseconds())
	if err := o.compareCheck(); err != nil {
		return err
	}
	return o.measureEdits()
}

func report(what, format string, args ...any) {
	fmt.Printf("%-46s %s\n", what, fmt.Sprintf(format, args...))
}

// prepare writes the lists and the configuration.
func (o options) prepare() error {
	started := time.Now()
	long := filepath.Join(o.dir, "long.txt")
	if err := writeList(long, o.seed, o.entries, ""); err != nil {
		return err
	}
	info, err := os.Stat(long)
	if err != nil {
		return err
	}
	report("generated, not measured", "%d entries, %d MiB, in %.1f s", o.entries, info.Size()>>20, time.Since(started).Seconds())
	if err := writeList(filepath.Join(o.dir, "short.txt"), o.seed+1, shortEntries, ""); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.dir, "own.txt"), []byte("one.example\ntwo.example\nthree.example\n"), 0o644); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(o.dir, "state")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.dir, "config.toml"), []byte(config(o.kind)), 0o644)
}

// settled is the wait between building and measuring memory.
const settled = 10 * time.Second

// measureGate starts the gate twice, and changes a line of the short list.
func (o options) measureGate() (err error) {
	g, took, err := startGate(o.program, o.dir)
	if err != nil {
		return err
	}
	report("from text to live", "%.2f s", took.Seconds())
	peak, _, err := g.memory()
	if err != nil {
		return errors.Join(err, g.stop())
	}
	report("most resident memory while building", "%d MiB", peak>>20)
	time.Sleep(settled)
	_, anonymous, err := g.memory()
	if err := errors.Join(err, g.stop()); err != nil {
		return err
	}
	report("anonymous memory 10 s after", "%d MiB", anonymous>>20)

	if g, took, err = startGate(o.program, o.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	report("a start over the same lists", "%.2f s", took.Seconds())
	if took, err = g.timeChange(o.addLine); err != nil {
		return err
	}
	report("one line more in a list of 100,000: live after", "%.2f s", took.Seconds())
	if took, err = g.timeChange(o.removeLine); err != nil {
		return err
	}
	report("and taken out again", "%.2f s", took.Seconds())
	time.Sleep(settled)
	_, anonymous, err = g.memory()
	report("anonymous memory 10 s after that", "%d MiB", anonymous>>20)
	return err
}

func (o options) addLine() error {
	f, err := os.OpenFile(filepath.Join(o.dir, "short.txt"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("one-more.example\n")
	return errors.Join(err, f.Close())
}

func (o options) removeLine() error {
	return writeList(filepath.Join(o.dir, "short.txt"), o.seed+1, shortEntries, "")
}

// compareCheck asks spamgate check and postmap the same questions, in turn.
func (o options) compareCheck() error {
	if err := writeQuestions(o.dir, o.seed, o.entries); err != nil {
		return err
	}
	if o.postmap {
		if err := makeTable(o.dir, o.seed, o.entries); err != nil {
			return err
		}
	}
	const rounds = 3
	check, postmap := time.Duration(1<<62), time.Duration(1<<62) // the best of the rounds
	for range rounds {
		if err := ask(&check, o.dir, "addresses", o.program, "check", "-"); err != nil {
			return err
		}
		if !o.postmap {
			continue
		}
		if err := ask(&postmap, o.dir, "keys", "postmap", "-c", o.dir, "-q", "-", "lmdb:"+filepath.Join(o.dir, "table")); err != nil {
			return err
		}
	}
	rate := func(d time.Duration) float64 { return questions / d.Seconds() / 1e6 }
	report("spamgate check -, start included", "%.2f s, %.2f million addresses a second", check.Seconds(), rate(check))
	if o.postmap {
		report("postmap -q -, exact keys alone", "%.2f s, %.2f million keys a second", postmap.Seconds(), rate(postmap))
		report("check against postmap", "%.2f times as fast", postmap.Seconds()/check.Seconds())
	}
	return nil
}
