// Command bench measures the cost of the gate. Postfix's smtp-source sends the same
// mail to its smtp-sink directly, through HAProxy in TCP mode, through Postfix as a
// before-queue filter with the same list, through a proxy of go-smtp alone, and
// through three gates, which tell the sink who its clients are in different ways.
// All take turns in one run. The command prints times and ratios, then refusals a
// second and the latency of single commands.
//
// Everything runs on loopback and in temporary directories, and ends with the
// command. A run counts only if the sink received every message once, and the
// servers that were not measured were idle.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// plainCommand is the subcommand of the plain proxy, one of the measured servers.
const plainCommand = "plain-proxy"

// options are the options of the command line.
type options struct {
	rounds   int
	messages int // of 4 KiB; a tenth of it of 1 MiB
	reuse    bool
	json     bool
	svg      string   // the file for a picture, "" for none
	before   string   // a gate to compare with, "" for none
	only     []string // the rows that are measured
}

// run executes the command line and returns the exit code: 0 if it measured all, 2 if
// not. The figures do not affect it: people judge them.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 3 && args[0] == plainCommand {
		fmt.Fprintln(stderr, "bench:", servePlainProxy(args[1], args[2]))
		return 2
	}
	if len(args) == 2 && args[0] == generatorCommand {
		result, err := serveOrder(args[1])
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 2
		}
		stdout.Write(result)
		return 0
	}
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2 // the flag package has printed why
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()

	r, err := benchmark(ctx, o, stderr)
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if r != nil && len(r.Rows) > 0 { // what was measured is told, even if a row failed
		err = errors.Join(err, write(stdout, r, o.json))
	}
	if err == nil && o.svg != "" {
		err = r.writePicture(o.svg)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	}
	return 0
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.rounds, "rounds", 5, "how often everything is measured, 1 or more")
	flags.IntVar(&o.messages, "messages", 5000, "messages of 4 KiB in a run, 10 or more; of 1 MiB a tenth of it")
	flags.BoolVar(&o.reuse, "reuse", true, "let the gates keep their connections to the sink, as they do by default")
	flags.StringVar(&o.svg, "svg", "", "draw the times into this SVG file, too")
	flags.StringVar(&o.before, "before", "", "measure this program of an older gate, too")
	only := flags.String("only", "", "measure these rows alone, divided by commas: "+strings.Join(rowNames, ", "))
	flags.BoolVar(&o.json, "json", false, "print JSON with every single time instead of tables")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.only = rowNames
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	var err error
	for _, name := range o.only {
		if !slices.Contains(rowNames, name) {
			err = fmt.Errorf("--only has no row %q; they are %s", name, strings.Join(rowNames, ", "))
		}
	}
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.rounds < 1:
		err = errors.New("--rounds must be 1 or more")
	case o.messages < 10:
		err = errors.New("--messages must be 10 or more")
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		flags.Usage()
	}
	return o, err
}

func write(w io.Writer, r *report, asJSON bool) error {
	if !asJSON {
		return r.writeText(w)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
