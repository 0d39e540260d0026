// Command filters compares the filters of package bloom with other libraries':
// bits-and-blooms/bloom with the same number of entries and the same false
// positive rate, and the binary fuse filters of FastFilter/xorfilter, which have
// fixed rates and take no keys after they are built. Every time includes hashing
// the key.
//
// All contenders take turns, so that other work of the machine slows all alike, and
// ratios are taken within a turn. The command prints medians.
//
// It is a module of its own: users of spamgate do not need the other libraries.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"spamgate/blocklist/bloom"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// options are the options of the command line.
type options struct {
	entries     int
	classicBits uint64
	trials      int
	lookups     int
	rounds      int
	builds      int
	json        bool
}

// run executes the command line and returns the exit code: 0 if it measured, 2 if
// not. The figures do not affect it: people judge them.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2 // already printed
	}
	r, err := measure(o, stderr)
	if err == nil {
		err = write(stdout, r, o.json)
	}
	if err != nil {
		fmt.Fprintln(stderr, "filters:", err)
		return 2
	}
	return 0
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("filters", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.entries, "entries", 10_000_000, "keys in each filter, 1000 or more")
	flags.Uint64Var(&o.classicBits, "classic-bits", bloom.ClassicBits, "bits of the classic filter, 1 to 2^32; its false positive rate is what the others are made for")
	flags.IntVar(&o.trials, "trials", 10_000_000, "absent keys that are looked up to count false positives, 1000 or more")
	flags.IntVar(&o.lookups, "lookups", 500_000, "keys that are looked up in a turn, 1000 or more, at most as many as --trials")
	flags.IntVar(&o.rounds, "rounds", 11, "turns of looking up, 1 or more")
	flags.IntVar(&o.builds, "builds", 3, "turns of building, 1 or more")
	flags.BoolVar(&o.json, "json", false, "print JSON with every single time instead of a table")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	err := o.check(flags.Args())
	if err != nil {
		fmt.Fprintln(stderr, "filters:", err)
		flags.Usage()
	}
	return o, err
}

// check returns an error if an option is out of range.
func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.entries < 1000:
		return errors.New("--entries must be 1000 or more")
	case o.classicBits < 1 || o.classicBits > bloom.MaxBits:
		return fmt.Errorf("--classic-bits must be 1 to %d", uint64(bloom.MaxBits))
	case o.trials < 1000:
		return errors.New("--trials must be 1000 or more")
	case o.lookups < 1000 || o.lookups > o.trials:
		return fmt.Errorf("--lookups must be 1000 to %d, the number of --trials", o.trials)
	case o.rounds < 1:
		return errors.New("--rounds must be 1 or more")
	case o.builds < 1:
		return errors.New("--builds must be 1 or more")
	}
	return nil
}

func write(w io.Writer, r *report, asJSON bool) error {
	if !asJSON {
		return r.writeText(w)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
