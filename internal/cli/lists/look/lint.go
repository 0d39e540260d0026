package look

import (
	"bufio"
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/internal/cli"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

type listsLintOptions struct {
	session.Flags
	session.FormatFlags
	all bool
}

func newListsLintCommand() *cobra.Command {
	var o listsLintOptions
	cmd := &cobra.Command{
		Use:   "lint FILE... | --list NAME",
		Short: "Check a list file for mistakes",
		Long: `Check list files, configured or not. The output names each invalid line and what
to write instead, and each entry that is likely a mistake (repeated, or covering
the customers of a hosting company). "-" is standard input. With --list the
command checks the files of that list with its settings, and names the entries
that the gate leaves out: protected domains, and <> and name@ in a list from a
URL.

Lines that are valid in their format but cannot be looked up, such as regular
expressions, are unsupported. They do not count as mistakes. The first ten of a
file are shown; --all shows all.

Exit codes: 0 no invalid lines; 1 there are some, which a gate skips, or the
file has lines and lists nobody; 2 an error, or too many invalid lines for a
gate to accept the file.`,
		Example: `  spamgate lists lint bad.txt
  spamgate lists lint --format hosts hosts.txt
  spamgate lists lint --list blocked`,
	}
	cmd.Flags().StringVarP(&o.List, "list", "l", "", "check the files of the list of this `NAME`")
	cmd.Flags().BoolVar(&o.all, "all", false, "show all unsupported lines")
	o.FormatFlags.Add(cmd)
	o.AddMatching(cmd)
	cmd.Flags().BoolVar(&o.Allow, "allow", false, "as in a list with type = \"allow\"")
	o.AddPerRecipient(cmd)
	o.AddJSON(cmd)
	o.RunsIf(cmd, func(args []string) bool { return o.List != "" && len(args) == 0 }, func(s *session.Session, args []string) error { return listsLint(s, o, args) })
	return cmd
}

// lintReport is the output of lint for one file.
type lintReport struct {
	File string `json:"file"`
	session.ReadReport
	Exceptions int                 `json:"exceptions"` // of the entries
	Warnings   int                 `json:"warnings"`
	LeftOut    int                 `json:"left_out"` // of these: entries that the gate leaves out
	Problems   []session.ProblemAt `json:"problems"` // the first maxLintProblems
	Refused    string              `json:"refused,omitempty"`
	Nobody     string              `json:"lists_nobody,omitempty"` // why the file lists nobody although it has lines

	unsupported []session.ProblemAt // the first ones, shown behind the rest
	hidden      int                 // others
}

// maxUnsupported bounds the unsupported lines that are shown for a file.
const maxUnsupported = 10

// maxLintProblems bounds the problems of a file in JSON.
const maxLintProblems = 10_000

// lintRun is one run of lint.
type lintRun struct {
	*session.Session
	out     *bufio.Writer
	options listfile.Options
	all     bool            // show all unsupported lines
	list    *listfiles.List // nil: no list's files are checked
	guarded listfiles.Protection
	bar     *term.FileProgress
	reports []*lintReport
}

func listsLint(s *session.Session, o listsLintOptions, args []string) error {
	l := &lintRun{Session: s, out: bufio.NewWriter(term.Escape(s.Cmd.OutOrStdout())), all: o.all}
	var err error
	switch {
	case o.List == "" && len(args) == 0:
		return errors.New("no file: name one or more, - for standard input, or a list with --list NAME")
	case o.List != "" && len(args) > 0:
		return errors.New("--list goes without files: it checks those of the list")
	case o.List != "" && o.FormatChanged(s.Cmd) != "":
		return fmt.Errorf("--%s goes with files: a list is read as the configuration says", o.FormatChanged(s.Cmd))
	case o.List != "":
		args, err = l.ofList(o.List)
	default:
		l.options, err = o.FormatFlags.Options()
	}
	if err != nil {
		return err
	}
	l.bar = term.NewFileProgress(s.Stderr, args...)
	for _, path := range args {
		if err := l.file(path); err != nil {
			return errors.Join(err, l.out.Flush())
		}
	}
	l.bar.Finish()
	return l.finish()
}

// ofList prepares to check the files of a list with the options of that list.
func (l *lintRun) ofList(name string) ([]string, error) {
	list, err := listfiles.Find(l.Config, name)
	if err != nil {
		return nil, err
	}
	if l.list, err = listfiles.New(list); err != nil {
		return nil, err
	}
	l.guarded = listfiles.NewProtection(l.Config)
	l.options = l.list.Options
	l.options.Now = 0
	return l.list.Paths, nil
}

// open opens a file to be checked. A file of a list is opened as a gate opens it.
func (l *lintRun) open(path string) (*listfiles.Input, error) {
	if l.list != nil {
		return listfiles.OpenListFile(l, setup.Opener(l.list.List), path, l.bar)
	}
	return listfiles.OpenInput(l, l.Cmd.InOrStdin(), path, l.bar)
}

func (l *lintRun) file(path string) error {
	in, err := l.open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	r := &lintReport{File: in.Path, Problems: []session.ProblemAt{}}
	lines := map[uint64]int{}
	seed := maphash.MakeSeed()
	entries := listfile.NewReader(in, l.options)
	entries.Problem = func(p listfile.Problem) { l.problem(r, session.NewProblemAt(in.Path, p)) }
	for e, err := range entries.All() {
		if err != nil {
			return fmt.Errorf("%s: %w", term.ShortPath(in.Path), err)
		}
		for _, w := range l.warnings(e) {
			l.problem(r, w)
		}
		if e.Exception {
			r.Exceptions++
		}
		if len(lines) < maxRepeats {
			h := maphash.String(seed, listfiles.Written(e))
			if first, ok := lines[h]; ok {
				l.problem(r, session.Warning(e, fmt.Sprintf("repeats line %d", first), "remove one of them"))
			} else {
				lines[h] = e.Line
			}
		}
	}
	result := entries.Result()
	r.ReadReport = session.NewReadReport(result)
	r.Refused = session.RefusedBecause(result)
	r.Nobody = (&blocklist.ListStats{
		Entries: r.Entries - r.LeftOut, Exceptions: r.Exceptions, Expired: r.Expired,
		Invalid: r.Invalid, Unsupported: r.Unsupported, Protected: r.LeftOut, Skipped: result.Skipped,
	}).ListsNobody()
	l.reports = append(l.reports, r)
	return l.summary(r)
}

// maxRepeats bounds the entries among which repeated ones are found: they take about
// 100 MiB.
const maxRepeats = 2_000_000

// warnings returns the likely mistakes in an entry.
func (l *lintRun) warnings(e listfile.Entry) []session.ProblemAt {
	var w []session.ProblemAt
	if domain, ok := session.CoversTenants(e); ok {
		w = append(w, session.Warning(e, "its customers have names below it", "list theirs, or write @"+domain+" for that name alone"))
	}
	if l.list != nil {
		if why := l.guarded.LeftOut(l.list, e); why.Omitted() {
			p := session.Warning(e, why.What(), why.Hint())
			p.LeftOut = true
			w = append(w, p)
		}
	}
	return w
}

// problem prints a problem or a warning.
func (l *lintRun) problem(r *lintReport, p session.ProblemAt) {
	p.File = r.File
	if p.Warning {
		r.Warnings++
	}
	if p.LeftOut {
		r.LeftOut++
	}
	switch {
	case !l.JSON && p.Unsupported && !l.all && len(r.unsupported) == maxUnsupported:
		r.hidden++
	case !l.JSON && p.Unsupported && !l.all:
		r.unsupported = append(r.unsupported, p)
	case !l.JSON:
		fmt.Fprintln(l.out, p)
	case len(r.Problems) < maxLintProblems:
		r.Problems = append(r.Problems, p)
	}
}

// summary prints the counts of a file.
func (l *lintRun) summary(r *lintReport) error {
	if l.JSON {
		return nil
	}
	for _, p := range r.unsupported {
		fmt.Fprintln(l.out, p)
	}
	if r.hidden > 0 {
		fmt.Fprintf(l.out, "%s: %s; --all shows them\n", term.ShortPath(r.File), text.Count(r.hidden, "more unsupported line", "more unsupported lines"))
	}
	fmt.Fprintf(l.out, "%s: %s%s\n", term.ShortPath(r.File), r.Describe(), session.Also(r.Exceptions, "exception among the entries", "exceptions among the entries")+
		session.Also(r.Warnings, "warning", "warnings")+
		session.Also(r.LeftOut, "entry left out", "entries left out"))
	for _, note := range r.Notes {
		fmt.Fprintf(l.out, "%s: %s\n", term.ShortPath(r.File), note)
	}
	if r.Nobody != "" {
		fmt.Fprintf(l.out, "%s: %s\n", term.ShortPath(r.File), r.Nobody)
	}
	return l.out.Flush()
}

// finish prints the JSON, and returns the error that sets the exit code.
func (l *lintRun) finish() error {
	if l.JSON {
		if err := cli.PrintJSON(l.out, l.reports); err != nil {
			return err
		}
	}
	if err := l.out.Flush(); err != nil {
		return err
	}
	faulty := false
	var errs []error
	for _, r := range l.reports {
		faulty = faulty || r.Invalid > 0 || r.Nobody != ""
		if r.Refused != "" {
			errs = append(errs, fmt.Errorf("%s: %s", term.ShortPath(r.File), r.Refused))
		}
	}
	if errs == nil && faulty {
		return cli.ErrNo
	}
	return errors.Join(errs...)
}
