package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"spamgate/hashfamily"
	"spamgate/internal/cli"
	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/render"
	"spamgate/internal/hashlab/summary"
	"spamgate/internal/term"
	"spamgate/internal/version"
)

// comparison is a call of "hashlab compare".
type comparison struct {
	families, corpora     []string
	indices, from         string
	asList, full          bool
	seed                  cli.NumberFlag[uint64]
	asJSON, asCSV         bool
	pagePath, pictureRoot string
	resultPath            string

	// run measures. Tests replace it.
	run func(context.Context, hashlab.Options) (*hashlab.Report, error)
}

func newCompareCommand() *cobra.Command {
	return (&comparison{run: measure}).command()
}

// measure runs the laboratory and sums up its numbers.
func measure(ctx context.Context, o hashlab.Options) (*hashlab.Report, error) {
	r, err := hashlab.Run(ctx, o)
	if err != nil {
		return nil, err
	}
	r.Summary = summary.Of(r)
	return r, nil
}

func (c *comparison) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compare",
		Short: "Measure hash families and single hashes against the textbook",
		Long: `Measure how families of hash functions perform in a Bloom filter: false positive
rates against the formula, per key and per message, fill ratio, the work of each
function, collisions, uniformity, avalanche, agreement and speed, next to two
controls, ideal random hashes and XXH3. The output is tables and a summary in
words. "What the formula says" is claimed only of rates that are shown to be
within 5% of it. The default run takes 60 seconds at most on two idle cores;
--full takes much longer (tens of minutes), and gives narrower intervals and
filters of full size.

The families:

  classic   the eleven classic hashes; classic:RS,JS,AP are some of them
  classic9  nine of them: without ELF, which is PJW again, and without BP
  weighted  h = seed*h + byte under the seeds 5, 7, 11, 13, 31, 37 and 61;
            weighted:3,9 has others
  digest    one MD5, divided by the number of bits again and again
  double    the two halves of HighwayHash-128 make all indices, under a key
            (here a public one); double:murmur3 has MurmurHash3-128, without
  seeded    the two halves of XXH3-64 make all indices, with the seed 0;
            seeded:42 has another

A corpus is a file with one key per line: raw bytes, nothing trimmed, only a
line feed ends a line. With --as-list it is a list, as the gate reads it. Each
corpus needs at least 1000 different keys. The default corpora are a real list,
generated ones, and the keysets Sparse, Permutation and Diff after SMHasher3.
The default families are all of the above.

A family of your own needs no Go: --indices FILE has for each line of the corpus
a line with the numbers that your functions give for that key, separated by
blanks: whole hashes, which are taken modulo the bits of each filter. It is
compared with double hashing by as many functions and with the other families;
only rates per message and speeds need more than numbers.

Except for the speeds, every number can be reproduced from the manifest: the
same version, flags, seed and corpora give the same numbers. The manifest is in
the text, --json, --csv and the page, but not in separate pictures.

--json prints everything. --csv prints all numbers except the avalanche maps,
one per line, in the columns section, corpus, subject, kind, part, m, k, n,
metric, value, low and high (the limits of 95% confidence). Sections and metrics
have the same names as in the JSON. docs/hash-families-fields.md explains each,
with its unit and range.

--results FILE keeps everything that text, page and pictures show, as JSON under
gzip: with seed, version, processor and compiler. --from FILE shows such a file,
or one of --json, again, and measures nothing.

Files are created or replaced only when they are complete. --html replaces only
an empty file or a page of this command, --results only an empty file or other
results. --pictures replaces files with the names of its pictures, and no
others. A file that is read is never replaced.
Ctrl-C ends the measurements and prints the results so far, marked as
interrupted, with exit code 2; files stay as they were. A second Ctrl-C ends the
command at once.`,
		Example: `  hashlab compare
  seq -f user%g@example.com 5000 > keys.txt
  hashlab compare --corpus keys.txt --family weighted:5,7
  hashlab compare --corpus keys.txt --as-list --json > report.json
  ./my-hashes < keys.txt > numbers.txt
  hashlab compare --corpus keys.txt --indices numbers.txt
  seq 5000 | hashlab compare --corpus - --csv > report.csv
  hashlab compare --full --html hashes.html --results full.json.gz
  hashlab compare --from full.json.gz --pictures pictures/`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s is too much, there are only flags: name a file of keys with --corpus FILE, a family with --family NAME", strconv.Quote(args[0]))
			}
			return nil
		},
		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, _ []string) error { return c.do(cmd) },
	}
	f := cmd.Flags()
	// Arrays, not slices: the names of families and files hold commas.
	f.StringArrayVar(&c.families, "family", nil, "a family of that `NAME`, see above (repeatable)")
	f.StringArrayVar(&c.corpora, "corpus", nil, "a `FILE` of keys, in place of the laboratory's own\n(repeatable); - is standard input")
	f.StringVar(&c.indices, "indices", "", "a `FILE` with the numbers of a family of your own:\na line for each line of the corpus")
	f.BoolVar(&c.asList, "as-list", false, "the corpus files are lists: their entries are the keys")
	c.seed = wholeNumber(1, 0, math.MaxUint64)
	f.Var(&c.seed, "seed", "where random choices begin")
	f.BoolVar(&c.full, "full", false, "measure longer, and at full size")
	f.BoolVar(&c.asJSON, "json", false, "print everything as a JSON object")
	f.BoolVar(&c.asCSV, "csv", false, "print every number as a line of CSV")
	f.StringVar(&c.pagePath, "html", "", "write a page with pictures to this `FILE`, too")
	f.StringVar(&c.resultPath, "results", "", "write all results to this `FILE`, too")
	f.StringVar(&c.from, "from", "", "show the results in this `FILE` instead of measuring")
	f.StringVar(&c.pictureRoot, "pictures", "", "write each picture as an SVG file to this `FOLDER`, too;\nit is made if there is none")
	return cmd
}

// measuringFlags are those that the numbers depend on.
var measuringFlags = map[string]bool{"family": true, "corpus": true, "indices": true, "as-list": true, "seed": true, "full": true}

// do measures and shows.
func (c *comparison) do(cmd *cobra.Command) error {
	// Everything that can fail early is checked before the measurements, which take long.
	if c.asJSON && c.asCSV {
		return errors.New("--json does not go with --csv: choose one of them")
	}
	files, err := c.targets(cmd)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("from") {
		return c.again(cmd, files)
	}
	options, err := c.options(cmd)
	if err != nil {
		return err
	}
	// The first signal ends the measuring; then the default is back, so that a
	// second one ends the process.
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()

	bar := term.NewProgress(cmd.ErrOrStderr())
	options.Progress = bar.Show
	report, err := c.run(ctx, options)
	if ctx.Err() != nil {
		bar.FinishInterrupted()
	} else {
		bar.Finish()
	}
	if err != nil {
		return err
	}
	if err := c.print(cmd.OutOrStdout(), report); err != nil {
		return err
	}
	if report.Interrupted {
		if files.some() {
			return errors.New("interrupted: what was done is printed, and no file was written")
		}
		return errors.New("interrupted: what was done is printed")
	}
	return files.write(ctx, report)
}

// again shows the results of an earlier run.
func (c *comparison) again(cmd *cobra.Command, files *compareFiles) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if measuringFlags[f.Name] && err == nil {
			err = fmt.Errorf("--from shows results, and --%s is for measuring: leave out one of them", f.Name)
		}
	})
	if err != nil {
		return err
	}
	in, _, err := openInput("--from", c.from, cmd.InOrStdin())
	if err != nil {
		return err
	}
	defer in.Close()
	report, err := render.ReadResults(in)
	if err != nil {
		return fmt.Errorf("--from %s: %w: name a file of --results or --json", c.from, err)
	}
	if err := c.print(cmd.OutOrStdout(), report); err != nil {
		return err
	}
	return files.write(cmd.Context(), report)
}

// options reads the corpora and checks the names of families.
func (c *comparison) options(cmd *cobra.Command) (hashlab.Options, error) {
	o := hashlab.Options{Families: c.families, Seed: c.seed.Value, Full: c.full, Version: labVersion(version.Read())}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !measuringFlags[f.Name] {
			return
		}
		values := []string{f.Value.String()}
		if array, ok := f.Value.(pflag.SliceValue); ok {
			values = array.GetSlice()
		}
		for _, v := range values {
			o.Flags = append(o.Flags, "--"+f.Name+"="+v)
		}
	})
	if err := checkFamilies(c.families); err != nil {
		return o, err
	}
	if c.asList && len(c.corpora) == 0 {
		return o, errors.New("--as-list says how to read the files of --corpus FILE: name one")
	}
	for i, path := range c.corpora {
		if slices.Contains(c.corpora[:i], path) {
			return o, fmt.Errorf("--corpus %s is given twice: give each once", path)
		}
	}
	if cmd.Flags().Changed("indices") {
		return c.withIndices(o, cmd.InOrStdin(), cmd.ErrOrStderr())
	}
	for _, path := range c.corpora {
		corpus, err := readCorpus(path, cmd.InOrStdin(), c.asList)
		if err != nil {
			return o, err
		}
		o.Corpora = append(o.Corpora, corpus)
	}
	return o, nil
}

// leastLargest is the number of bits of the smallest filters of a large corpus: if no
// number is as large, most bits of all filters stay clear.
const leastLargest = 1 << 16

// withIndices adds the corpus and the family of --indices.
func (c *comparison) withIndices(o hashlab.Options, stdin io.Reader, stderr io.Writer) (hashlab.Options, error) {
	switch {
	case c.asList:
		return o, errors.New("--indices does not go with --as-list: the numbers belong to lines of a file of keys")
	case len(c.corpora) != 1:
		return o, fmt.Errorf("--indices has a line for each line of one corpus, and there are %d: name one with --corpus FILE", len(c.corpora))
	case c.indices == stdinName && c.corpora[0] == stdinName:
		return o, errors.New("--indices and --corpus are both standard input: name a file for one of them")
	}
	keys, name, err := openInput("--corpus", c.corpora[0], stdin)
	if err != nil {
		return o, err
	}
	defer keys.Close()
	numbers, family, err := openInput("--indices", c.indices, stdin)
	if err != nil {
		return o, err
	}
	defer numbers.Close()
	corpus, indices, err := hashlab.ReadIndices(name, keys, filepath.Base(family), numbers)
	if err != nil {
		return o, err
	}
	if most := indices.Largest(); most < leastLargest {
		fmt.Fprintf(stderr, "warning: no number in %s is larger than %d, but filters have 2^16 bits and more: give whole hashes, which are taken modulo the bits\n", family, most)
	}
	o.Corpora, o.Own = []*hashlab.Corpus{corpus}, []hashlab.Family{indices.Family()}
	return o, nil
}

// openInput opens a file, or standard input, and returns the name for tables.
func openInput(flag, path string, stdin io.Reader) (io.ReadCloser, string, error) {
	if path == stdinName {
		return io.NopCloser(stdin), stdinCorpus, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w: name a file, or - for standard input", flag, err)
	}
	return file, path, nil
}

// checkFamilies wants names of families, no two of one.
func checkFamilies(names []string) error {
	before := make(map[string]string) // by the name that the family has in reports
	for _, name := range names {
		spec, err := hashfamily.ParseSpec(name)
		if err != nil {
			return fmt.Errorf("--family %s: %w", strconv.Quote(name), err)
		}
		switch other, twice := before[spec.String()]; {
		case twice && other == name:
			return fmt.Errorf("--family %s is given twice: give each once", name)
		case twice:
			return fmt.Errorf("--family %s is --family %s again: give each once", name, other)
		}
		before[spec.String()] = name
	}
	return nil
}

// labVersion returns the version for a manifest, which names Go and the system itself.
func labVersion(b version.Info) string {
	s := b.Version
	if len(b.Revision) >= 12 {
		s += ", revision " + b.Revision[:12]
	}
	if b.Modified {
		s += " with changes"
	}
	return s
}

// stdinName is the path that stands for standard input, and stdinCorpus how its
// keys are called.
const stdinName, stdinCorpus = "-", "stdin"

func readCorpus(path string, stdin io.Reader, asList bool) (*hashlab.Corpus, error) {
	switch path {
	case "":
		return nil, errors.New("--corpus: no file to read: name one of keys, a line each, or - for standard input")
	case stdinName:
		return hashlab.ReadCorpus(stdinCorpus, stdin, asList)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--corpus: %w: name a file of keys, one a line", err)
	}
	defer file.Close()
	return hashlab.ReadCorpus(path, file, asList)
}

// print writes to standard output.
func (c *comparison) print(w io.Writer, r *hashlab.Report) error {
	switch {
	case c.asJSON:
		return render.JSON(w, r)
	case c.asCSV:
		return render.CSV(w, r)
	default:
		return render.Text(w, r, term.Width(w, render.TextWidth))
	}
}
