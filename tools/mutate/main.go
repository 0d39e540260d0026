// Mutate plants bugs in a temporary copy of the checkout, and reports which of them the
// tests catch. The bugs are in bugs.txt; see readBugs for its form. One build
// has all, and an environment variable switches one of them on.
//
//	go -C tools/mutate run .                  # all
//	go -C tools/mutate run . -only NAME       # those whose name has this in it
//	go -C tools/mutate run . -part 2/4        # each fourth, from the second on
//	go -C tools/mutate run . -list
//
// The exit status is 0 if all are caught, 1 if one survived, does not apply, does not
// build, or has tests that fail without it, and 2 if mutate itself has failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	file := flags.String("bugs", "bugs.txt", "the `file` with the bugs")
	only := flags.String("only", "", "plant only bugs with this `text` in their name")
	part := flags.String("part", "1/1", "plant each `n/m`-th of these bugs: 2/4 is each fourth, from the second on")
	list := flags.Bool("list", false, "list the bugs and plant none")
	limit := flags.Duration("limit", time.Minute, "the time limit of each test run")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	bugs, err := load(*file, *only)
	if err == nil {
		bugs, err = partOf(bugs, *part)
	}
	if err != nil {
		fmt.Fprintln(stderr, "mutate:", err)
		return 2
	}
	if *list {
		for _, b := range bugs {
			fmt.Fprintf(stdout, "%-28s %-40s %s\n", b.Name, b.File, b.Harm)
		}
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	good, err := plantAll(ctx, bugs, *limit, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "mutate:", err)
		return 2
	}
	if !good {
		return 1
	}
	return 0
}

// load reads the selected bugs.
func load(file, only string) ([]bug, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	bugs, err := readBugs(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	bugs = slices.DeleteFunc(bugs, func(b bug) bool { return !strings.Contains(b.Name, only) })
	if len(bugs) == 0 {
		return nil, fmt.Errorf("%s has no bug with %q in its name; see -list", file, only)
	}
	return bugs, nil
}

// partOf returns each m-th bug, from the n-th on, for a part "n/m".
func partOf(bugs []bug, part string) (some []bug, err error) {
	var n, m int
	if _, err := fmt.Sscanf(part, "%d/%d", &n, &m); err != nil || n < 1 || n > m {
		return nil, fmt.Errorf("-part %q must be as 2/4, from 1/4 to 4/4", part)
	}
	for i := n - 1; i < len(bugs); i += m {
		some = append(some, bugs[i])
	}
	return some, nil
}

// plantAll tries each bug, writes a line about it, and repeats at the end those of the bugs that were
// not caught. It reports whether the tests caught all.
func plantAll(ctx context.Context, bugs []bug, limit time.Duration, w io.Writer) (good bool, err error) {
	c, err := newCheckout()
	if err != nil {
		return false, err
	}
	defer c.remove()
	t := &trier{checkout: c, limit: limit, done: map[string]func() (string, error){}, took: map[string]time.Duration{}}
	counts := map[outcome]int{}
	var mu sync.Mutex
	var bad []string
	say := func(b *bug, began time.Time, r result) {
		mu.Lock()
		defer mu.Unlock()
		counts[r.outcome]++
		line := fmt.Sprintf("%-15s %-28s %5.1fs  %s\n", r.outcome, b.Name, time.Since(began).Seconds(), r.why)
		if r.outcome != caught {
			bad = append(bad, line)
		}
		fmt.Fprint(w, line)
	}
	began := time.Now()
	indexes, failed, err := t.buildAll(ctx, bugs)
	if err != nil {
		return false, err
	}
	for i, r := range failed {
		say(&bugs[i], began, r)
	}
	fmt.Fprintf(w, "%d bugs built in %.0fs\n", len(indexes), time.Since(began).Seconds())
	err = inParallel(indexes, func(i int) error {
		began := time.Now()
		r, err := t.try(ctx, &bugs[i], i+1)
		if err == nil {
			say(&bugs[i], began, r)
		}
		return err
	})
	if err != nil {
		return false, err
	}
	fmt.Fprintf(w, "\n%s%d bugs in %.0fs: %d caught, %d survived, %d do not apply, %d do not build, %d without tests that pass\n",
		strings.Join(bad, ""), len(bugs), time.Since(began).Seconds(), counts[caught], counts[survived], counts[doesNotApply], counts[doesNotBuild], counts[noTest])
	return counts[caught] == len(bugs), nil
}

// inParallel does something for each index until an error: twice as many at a time as there are
// processors, as what many bugs do is that a test waits.
func inParallel(indexes []int, do func(i int) error) error {
	var g sync.WaitGroup
	var next atomic.Int64
	errs := make([]error, 2*runtime.GOMAXPROCS(0))
	for worker := range errs {
		g.Go(func() {
			for errs[worker] == nil {
				n := int(next.Add(1)) - 1
				if n >= len(indexes) {
					return
				}
				errs[worker] = do(indexes[n])
			}
		})
	}
	g.Wait()
	return errors.Join(errs...)
}
