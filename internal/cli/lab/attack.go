package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/hashattack"
	"spamgate/internal/term"
)

// maxAttackKeys bounds --keys: a million take about a minute.
const maxAttackKeys = 1_000_000

// attackReport is what "hashlab attack" prints as JSON.
type attackReport struct {
	*hashattack.Result

	// Keyed is missing if the search for names did not succeed.
	Keyed *hashattack.Keyed `json:"keyed,omitempty"`
}

// attackFlags are the flags of "hashlab attack".
type attackFlags struct {
	seed   cli.NumberFlag[uint64]
	keys   cli.NumberFlag[uint64]
	path   string
	all    bool
	asJSON bool
}

func newAttackCommand() *cobra.Command {
	flags := newAttackFlags()
	cmd := &cobra.Command{
		Use:   "attack TARGET",
		Short: "Make a domain a false positive, on purpose",
		Long: `Search for domain names that, once they are in a list, make the classic filter
say "maybe" to TARGET, a domain that is in no list, and show that this fails
against a filter whose hash has a secret key.

This is why the exact index confirms every refusal. The classic hashes have no
key, so an attacker who gets three names onto a list that you use can choose a
false positive of the filter. With confirmation that costs the gate one more
lookup for mail from TARGET, and refuses nothing. Only with [filter] confirm =
false would the mail be refused.

The names are valid and could be registered, under the public suffix of TARGET;
none is TARGET, above it or below it. Each shares three hashes with TARGET,
found by a multicollision of two stages (Joux 2004), and those that follow for
free: ELF equals PJW, and BP depends on the last four bytes only. The search
usually takes less than a minute and some hundred MiB of memory.

The keyed filter has as many bits and eleven indices from HighwayHash-128. The
same names are tried under many random keys, and so are names that were found by
brute force under a key that the attacker guessed.

--all attacks every family instead, and prints a table: how many names are
enough, how many were tried, and how long that took. The families without a
multicollision are attacked by brute force, so that a better attack may need
less. With a secret key or seed the attacker can only guess. It takes some
minutes of two cores.

The same TARGET and --seed give the same names and counts. Ctrl-C prints the
results so far, and writes no file.

--out writes a list file when all names are found. It replaces only an empty
file, or one that this command wrote, as its first line says. Any other file is
an error before the search begins, so that no list is lost.`,
		Example: `  hashlab attack example.com
  hashlab attack --out attack.txt --seed 7 example.com
  hashlab attack --all example.com
  hashlab attack --json example.com | jq -r '.names[].name'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d targets: give one domain, as in hashlab attack example.com", len(args))
			}
			return nil
		},
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := cli.Interruptible(cmd)
			defer stop()
			if flags.all {
				return runCosts(ctx, args[0], flags, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return runAttack(ctx, args[0], flags, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().Var(&flags.seed, "seed", "search elsewhere: another finds other names")
	cmd.Flags().Var(&flags.keys, "keys", fmt.Sprintf("random keys to try, 1 to %d", maxAttackKeys))
	cmd.Flags().StringVar(&flags.path, "out", "", "write the names to `FILE`, a list file")
	cmd.Flags().BoolVar(&flags.all, "all", false, "attack every family, and print what it costs")
	cmd.Flags().BoolVar(&flags.asJSON, "json", false, "report as a JSON object")
	return cmd
}

// newAttackFlags returns the default flags.
func newAttackFlags() attackFlags {
	return attackFlags{seed: wholeNumber(1, 0, math.MaxUint64), keys: wholeNumber(1000, 1, maxAttackKeys)}
}

// wholeNumber returns a flag for a whole number, with its default and bounds.
func wholeNumber(value, low, high uint64) cli.NumberFlag[uint64] {
	parse := func(s string) (uint64, error) {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("use a whole number from %d to %d", low, high)
		}
		return n, nil
	}
	return cli.NumberFlag[uint64]{Value: value, Text: strconv.FormatUint(value, 10), Name: "NUMBER", Parse: parse}
}

// runAttack searches, reports and writes the list. What was found before an
// error is reported too.
func runAttack(ctx context.Context, target string, flags attackFlags, stdout, stderr io.Writer) error {
	if flags.path != "" { // asked first: a mistake here should not cost the search
		if _, _, err := checkAttackList(flags.path); err != nil {
			return err
		}
	}
	report, err := attack(ctx, target, flags, stderr)
	if report.Result == nil {
		return err
	}
	if printErr := report.print(stdout, flags.asJSON); printErr != nil {
		return errors.Join(err, fmt.Errorf("writing the report: %w", printErr))
	}
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()) && flags.path != "":
		return errors.New("interrupted: what was found is printed, and no file was written")
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return errors.New("interrupted: what was found is printed")
	case err == nil && flags.path != "":
		return writeAttackList(ctx, report.Result, flags.path)
	}
	return err
}

// attack searches for names and turns them on the keyed filter, with a progress
// bar.
func attack(ctx context.Context, target string, flags attackFlags, stderr io.Writer) (attackReport, error) {
	bar := term.NewProgress(stderr)
	defer bar.Finish()
	// The search for names is most of the time.
	const part = 0.75
	result, err := hashattack.Search(ctx, hashattack.Options{
		Target: target,
		Seed:   flags.seed.Value,
		Progress: func(done, total int) {
			bar.Show(part*float64(done)/float64(total), "searching names")
		},
	})
	if err != nil {
		return attackReport{Result: result}, err
	}
	keyed, err := hashattack.TryKeyed(ctx, result, hashattack.KeyedOptions{
		Keys: int(flags.keys.Value),
		Seed: flags.seed.Value,
		Progress: func(done, total int) {
			bar.Show(part+(1-part)*float64(done)/float64(total), "trying the keyed filter")
		},
	})
	return attackReport{result, keyed}, err
}

func (r attackReport) print(w io.Writer, asJSON bool) error {
	if !asJSON {
		return printAttack(w, r)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// checkAttackList checks the target of --out. It refuses a file with content, unless "hashes
// attack" wrote it: the name may be that of a list that a gate reads.
func checkAttackList(path string) (target string, perm fs.FileMode, err error) {
	if target, perm, err = cli.CheckTarget("--out", path); err != nil {
		return "", 0, err
	}
	file, err := os.Open(target)
	if errors.Is(err, fs.ErrNotExist) {
		return target, perm, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("--out %s: may not be replaced, since it cannot be read: %w: name another file", path, err)
	}
	defer file.Close()
	head := make([]byte, len(hashattack.ListHead))
	n, err := io.ReadFull(file, head)
	switch {
	case errors.Is(err, io.EOF) || string(head) == hashattack.ListHead:
		return target, perm, nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return "", 0, fmt.Errorf("--out %s: may not be replaced, since it cannot be read after %d bytes: %w: name another file", path, n, err)
	}
	return "", 0, fmt.Errorf("--out %s: there is a file that \"hashlab attack\" did not write, and it is not replaced: name a new file, or delete this one first", path)
}

// writeAttackList writes the names as a list file.
func writeAttackList(ctx context.Context, r *hashattack.Result, path string) error {
	target, perm, err := checkAttackList(path)
	if err != nil {
		return err
	}
	_, err = cli.ReplaceFile(ctx, target, perm, func(w io.Writer) (int64, error) {
		n, err := io.WriteString(w, r.List())
		return int64(n), err
	})
	return err
}
