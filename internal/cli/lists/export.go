package lists

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/internal/atomicfile"
	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

type listsExportOptions struct {
	listsFlags
	format string
	json   bool
	out    string
}

func newListsExportCommand() *cobra.Command {
	var o listsExportOptions
	cmd := &cobra.Command{
		Use:   "export --format F | --json [--list NAME] [--out FILE]",
		Short: "Write a list for another program",
		Long: `Write a list on disk in the format of another program:

  plain    the gate's own format, with everything
  postfix  an access(5) table, for check_sender_access
  rbldnsd  a dnset of rbldnsd
  rpz      a response policy zone
  json     an array of strings

The default list is the only block list. Entries that a format cannot express
are reported on standard error with file and line, and skipped. Private notes
are written to a plain list only.

Exit codes: 0 all entries were written; 1 some could not be expressed; 2 an
error.`,
		Example: `  spamgate lists export --format postfix --list blocked > access
  spamgate lists export --format rpz --list blocked --out blocked.zone`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "the same as --format json")
	cmd.Flags().StringVarP(&o.list, "list", "l", "", "the `NAME` of the list")
	cmd.Flags().StringVarP(&o.format, "format", "f", "", "the format: `F` is plain, postfix, rbldnsd, rpz, json\n(required)")
	cmd.Flags().StringVarP(&o.out, "out", "o", "", "write to this `FILE`, which appears when it is complete\n(default: standard output)")
	o.runs(cmd, func(s *session, _ []string) error { return listsExport(s, o) })
	return cmd
}

// maxLeftOut bounds the entries that are shown because a format cannot express them.
const maxLeftOut = 20

func listsExport(s *session, o listsExportOptions) error {
	if o.json {
		if o.format != "" && o.format != string(listfile.JSON) {
			return fmt.Errorf("--format %s and --json: give one of them", o.format)
		}
		o.format = string(listfile.JSON)
	}
	format := listfile.Format(o.format)
	if o.format == "" {
		return errors.New("no format: give one with --format: plain, postfix, rbldnsd, rpz or json")
	}
	if _, err := listfile.Write(io.Discard, format, func(func(listfile.Entry) bool) {}, nil); err != nil {
		return fmt.Errorf("--format %s: use plain, postfix, rbldnsd, rpz or json", o.format)
	}
	list, err := listToExport(s.config, o.list)
	if err != nil {
		return err
	}
	if o.out == "-" {
		o.out = ""
	}
	if l := listWithFile(s.config, o.out); l != nil {
		return fmt.Errorf("--out %s: that is a file of list %s, which would be lost: name another", o.out, l.Name)
	}
	e := &exportRun{Scan: listfiles.NewScan(s, []*listfiles.List{list}, s.stderr), list: list, format: format}
	defer e.Bar.Finish()
	if o.out == "" {
		if _, err = e.write(s.cmd.OutOrStdout()); err != nil {
			err = fmt.Errorf("not all of the list is written: %w", err)
		}
	} else {
		err = e.writeFile(s, o.out)
	}
	if err != nil {
		return err
	}
	e.Bar.Finish()
	return e.finish()
}

// listToExport returns the named list, or else the only block list.
func listToExport(c *config.Config, name string) (*listfiles.List, error) {
	if name == "" {
		var blocks []string
		for _, l := range c.Lists {
			if l.Type == "block" {
				blocks = append(blocks, l.Name)
			}
		}
		if len(blocks) != 1 {
			return nil, fmt.Errorf("which list? name one with --list: %s", strings.Join(setup.ListNames(c.Lists), ", "))
		}
		name = blocks[0]
	}
	l, err := listfiles.Find(c, name)
	if err != nil {
		return nil, err
	}
	list, err := listfiles.New(l)
	list.Options.Now = 0 // what is over is not exported
	return list, err
}

// listWithFile returns the list to which the file belongs, or nil.
func listWithFile(c *config.Config, path string) *listfiles.List {
	for _, l := range c.Lists {
		at, err := listfiles.New(l)
		if err == nil && slices.ContainsFunc(at.Paths, func(file string) bool { return atomicfile.SameFile(file, path) }) {
			return at
		}
	}
	return nil
}

// exportRun is one run of export.
type exportRun struct {
	*listfiles.Scan
	list    *listfiles.List
	format  listfile.Format
	file    string // that is being read
	failed  error
	written int
	left    int
}

func (e *exportRun) writeFile(ctx context.Context, path string) error {
	target, perm, err := cli.CheckTarget("--out", path)
	if err != nil {
		return err
	}
	_, err = cli.ReplaceFile(ctx, target, perm, e.write)
	return err
}

// write writes the list.
func (e *exportRun) write(w io.Writer) (int64, error) {
	out := bufio.NewWriter(w)
	var err error
	e.written, err = listfile.Write(out, e.format, e.entries(), e.leave)
	if err == nil {
		err = out.Flush()
	}
	return 0, errors.Join(e.failed, err)
}

// errEnough stops reading if the consumer of the entries has stopped.
var errEnough = errors.New("enough")

// entries returns the entries of the list's files.
func (e *exportRun) entries() iter.Seq[listfile.Entry] {
	return func(yield func(listfile.Entry) bool) {
		for _, e.file = range e.list.Paths {
			_, err := e.Scan.File(setup.Opener(e.list.List), e.file, e.list.Options, func(entry listfile.Entry) error {
				if !yield(entry) {
					return errEnough
				}
				return nil
			}, nil)
			if err != nil {
				if !errors.Is(err, errEnough) { // what ended it is Write's to say
					e.failed = err
				}
				return
			}
		}
	}
}

// leave reports an entry that the format cannot express.
func (e *exportRun) leave(p listfile.Problem) {
	if e.left++; e.left <= maxLeftOut {
		fmt.Fprintln(term.Escape(e.Stderr), newProblemAt(e.file, p))
	}
}

func (e *exportRun) finish() error {
	if more := e.left - maxLeftOut; more > 0 {
		fmt.Fprintf(e.Stderr, "%d more\n", more)
	}
	fmt.Fprintf(e.Stderr, "list %s: %s written as %s", e.list.Name, text.Count(e.written, "entry", "entries"), e.format)
	if e.left > 0 {
		fmt.Fprintf(e.Stderr, ", %d left out\n", e.left)
		return cli.ErrNo
	}
	fmt.Fprintln(e.Stderr)
	return nil
}
