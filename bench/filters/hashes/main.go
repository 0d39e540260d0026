// Command hashes measures well-known hashes that spamgate does not use in the hash
// laboratory, beside the eleven classic ones: SipHash, FNV-1a, XXH64, wyhash, CRC32C
// and CityHash64. Each is measured alone, and as a family of eleven functions.
//
// It prints the report of "hashlab compare", with the same corpora and seed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/render"
	"spamgate/internal/hashlab/summary"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run executes the command line and returns the exit code: 0 if it measured, 2 if
// not.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("hashes", flag.ContinueOnError)
	flags.SetOutput(stderr)
	seed := flags.Uint64("seed", 1, "where random choices begin")
	asJSON := flags.Bool("json", false, "print everything as a JSON object")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // already printed
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "hashes: unexpected argument %q: there are only flags\n", flags.Arg(0))
		return 2
	}
	if err := measure(context.Background(), hashlab.Options{Seed: *seed}, *asJSON, stdout); err != nil {
		fmt.Fprintln(stderr, "hashes:", err)
		return 2
	}
	return 0
}

// measure measures, and prints the report.
func measure(ctx context.Context, o hashlab.Options, asJSON bool, stdout io.Writer) error {
	o.Families, o.Own, o.Hashes = []string{"classic", "double"}, families(), others()
	o.Version, o.Flags = "bench/filters/hashes", []string{fmt.Sprintf("--seed=%d", o.Seed)}
	r, err := hashlab.Run(ctx, o)
	if err != nil {
		return err
	}
	r.Summary = summary.Of(r)
	if asJSON {
		return render.JSON(stdout, r)
	}
	return render.Text(stdout, r, render.TextWidth)
}
