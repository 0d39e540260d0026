package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"strings"
)

// bug is a planted bug: a change to one file that tests must catch.
type bug struct {
	Name string
	Harm string // what it would do to users
	File string // relative to the checkout
	Old  string // text that the file has once
	New  string
	Line int // where the data file describes it

	Packages []string // whose tests catch it
	Run      string   // those that -run selects
	Short    bool
	Worlds   int // how many each part of internal/world plays; 0: as it does without
}

// readBugs reads a data file. A bug is a block of lines, and an empty line ends it:
//
//	name: exempt-by-suffix
//	harm: a listed sender reaches every domain that ends in an exempt one
//	file: smtpfilter/policy.go
//	test: ./smtpfilter -short -run ^TestDialogues$/^policy
//	-(d == "" || d == domain)
//	+(d == "" || strings.HasSuffix(domain, d))
//
// Lines that begin with "-" are the old text, those with "+" the new text, which may be
// empty. The first and the last line of the old text may be parts of lines of the file.
// Lines that begin with "#" are comments.
func readBugs(r io.Reader) ([]bug, error) {
	var bugs []bug
	var b bug
	var before, after []string
	number := 0
	end := func() error {
		if b.Line == 0 {
			return nil
		}
		b.Old, b.New = strings.Join(before, "\n"), strings.Join(after, "\n")
		if err := b.check(bugs); err != nil {
			return fmt.Errorf("line %d: %w", b.Line, err)
		}
		bugs = append(bugs, b)
		b, before, after = bug{}, nil, nil
		return nil
	}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		number++
		line := lines.Text()
		if line == "" {
			if err := end(); err != nil {
				return nil, err
			}
			continue
		}
		if b.Line == 0 && line[0] != '#' {
			b.Line = number
		}
		switch line[0] {
		case '#':
		case '-':
			before = append(before, line[1:])
		case '+':
			after = append(after, line[1:])
		default:
			if err := b.set(line); err != nil {
				return nil, fmt.Errorf("line %d: %w", number, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return bugs, end()
}

// set parses a line "key: value".
func (b *bug) set(line string) error {
	key, value, _ := strings.Cut(line, ": ")
	switch key {
	case "name":
		b.Name = value
	case "harm":
		b.Harm = value
	case "file":
		b.File = value
	case "test":
		return b.setTest(strings.Fields(value))
	default:
		return fmt.Errorf("%q: a line begins with name:, harm:, file:, test:, -, + or #", line)
	}
	return nil
}

// setTest reads arguments of go test.
func (b *bug) setTest(args []string) error {
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.BoolVar(&b.Short, "short", false, "")
	flags.IntVar(&b.Worlds, "world.n", 0, "")
	flags.StringVar(&b.Run, "run", "", "")
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return err
		}
		if args = flags.Args(); len(args) > 0 {
			b.Packages, args = append(b.Packages, args[0]), args[1:]
		}
	}
	return nil
}

// flags returns the flags of its tests. Those of a binary begin with "test.".
func (b *bug) flags(prefix string) []string {
	flags := []string{"-" + prefix + "failfast", "-" + prefix + "run=" + b.Run}
	if b.Short {
		flags = append(flags, "-"+prefix+"short")
	}
	if b.Worlds > 0 {
		flags = append(flags, fmt.Sprintf("-world.n=%d", b.Worlds), "-world.shrink=1s")
	}
	return flags
}

// check reports what is missing or repeated.
func (b *bug) check(others []bug) error {
	switch {
	case b.Name == "" || b.Harm == "" || b.File == "" || len(b.Packages) == 0 || b.Old == "":
		return fmt.Errorf("%q needs name, harm, file, test and old text (-)", b.Name)
	case b.Old == b.New:
		return fmt.Errorf("%q changes nothing", b.Name)
	}
	for _, o := range others {
		if o.Name == b.Name {
			return fmt.Errorf("the name %q is already used in line %d", b.Name, o.Line)
		}
	}
	return nil
}
