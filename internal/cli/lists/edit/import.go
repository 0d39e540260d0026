package edit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/internal/atomicfile"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

type listsImportOptions struct {
	session.Flags
	session.FormatFlags
}

func newListsImportCommand() *cobra.Command {
	var o listsImportOptions
	cmd := &cobra.Command{
		Use:   "import FILE [--list NAME] [--format F]",
		Short: "Add the entries of a file in another format to a list",
		Long: `Add the entries of a file to a list, each on its own line at the end, in the
gate's own format. Entries that the list has already are not changed or added
again; an entry and an exception (!) to it are different. "-" is standard input;
a file may be compressed with gzip or zstd. The default list is the only block
list that can be changed.

In a list with per_recipient = true the entries count for the recipients of
--for. Without it the file is a plain list whose lines begin with the recipient.

Invalid lines, and entries that the list does not accept, are reported with
their line number and skipped. --dry-run shows the result first.

If a list comes from another source regularly, name it in the configuration with
url or path and its format instead of importing it.

Exit codes: 0 the valid entries are in the list; 2 an error, and nothing has
changed unless the error says so.`,
		Example: `  spamgate lists import hosts.txt --format hosts --list blocked --dry-run
  spamgate lists import access --format postfix --list blocked
  curl -s https://lists.example/bad.csv |
    spamgate lists import - --format csv --column domain --list blocked`,
		Args: session.OneArgument("file whose entries are to be added, or - for standard input"),
	}
	addTarget(&o.Flags, cmd)
	o.FormatFlags.Add(cmd)
	o.AddChange(cmd, "the reason of entries that have none, as `TEXT`")
	o.Runs(cmd, func(s *session.Session, args []string) error { return listsImport(s, o, args[0]) })
	return cmd
}

// importReport is the output of import.
type importReport struct {
	From string `json:"from"`
	session.ReadReport
	List       string              `json:"list"`
	File       string              `json:"file"`
	DryRun     bool                `json:"dry_run"`
	Added      int                 `json:"added"`
	Present    int                 `json:"already_there"`
	NotTaken   int                 `json:"not_taken"`
	Cancelling int                 `json:"cancelling,omitempty"` // exceptions to entries that are there
	Deferring  int                 `json:"asked_to_be_deferred,omitempty"`
	Problems   []session.ProblemAt `json:"problems"` // the first maxImportProblems
	Gate       *local.Answer       `json:"gate,omitempty"`
}

// maxImportProblems bounds the lines that are shown because they were left out.
const maxImportProblems = 20

// importRun is one run of import.
type importRun struct {
	*session.Edit
	in      *listfiles.Input
	guarded listfiles.Protection
	options listfile.Options
	reason  string
	report  *importReport
	bar     *term.FileProgress
	present entrySet

	recipient string // for whom the entries are to count, in normal form; "": as the file says
	excepts   bool   // an exception is present

	begun importReport // the report before the first attempt
	spool *os.File     // the input, of a managed list; nil before the first attempt
}

func listsImport(s *session.Session, o listsImportOptions, path string) error {
	list, ran, err := listToAddTo(s)
	if err != nil || ran {
		return err
	}
	options, err := o.FormatFlags.Options()
	if err != nil {
		return err
	}
	switch err := checkSides(s, list); {
	case err != nil && (o.Recipient != "" || !list.PerRecipient):
		return err
	case err != nil && options.Format != listfile.Plain && options.Format != listfile.Auto:
		return fmt.Errorf("only a plain list has lines for recipients, not %s: say for whom these entries are to count, as in --for ann@example.net", options.Format)
	case err != nil:
		options.Format, options.PerRecipient = listfile.Plain, true
	}
	file, err := session.FileToEdit(list, o.File)
	if err != nil {
		return err
	}
	if path != "-" && atomicfile.SameFile(path, file) {
		return fmt.Errorf("%s is the list's own file", path)
	}
	bar := term.NewFileProgress(s.Stderr, path)
	defer bar.Finish()
	in, err := listfiles.OpenInput(s, s.Cmd.InOrStdin(), path, bar)
	if err != nil {
		return err
	}
	defer in.Close()
	// As the list reads its own lines, so that an imported line means there what
	// it meant.
	options.AllowPublicSuffix, options.Allow, options.Discard = list.AllowPublicSuffix, list.Options.Allow, list.Options.Discard
	i := &importRun{
		Edit: s.Edit(list, file),
		in:   in, guarded: listfiles.NewProtection(s.Config), options: options, reason: strings.TrimSpace(s.Reason), bar: bar, report: new(importReport),
		begun: importReport{From: in.Path, List: list.Name, File: file, DryRun: o.DryRun, Problems: []session.ProblemAt{}},
	}
	i.Why = cmp.Or(i.Why, "import")
	defer i.end()
	if o.Recipient != "" {
		i.recipient = recipientKey(o.Recipient, list.Options)
	}
	if err := i.run(s); err != nil {
		return err
	}
	bar.Finish()
	return s.PrintChange(i.report, func(w io.Writer) { i.print(w, term.Escape(s.Stderr)) })
}

// run reads the list, and copies it with the new entries after it.
func (i *importRun) run(ctx context.Context) error {
	if _, err := (listfile.Line{Text: "a.example", Reason: i.reason}).Parse(listfile.Options{}); err != nil {
		return fmt.Errorf("--reason: %w", err)
	}
	change, err := i.Rewrite(ctx, func(old io.ReadSeeker, w io.Writer) error {
		if err := i.begin(ctx); err != nil {
			return err
		}
		if err := i.readPresent(ctx, old); err != nil {
			return err
		}
		if _, err := old.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := (listedit.Splice{AppendAll: i.addAll}).Copy(w, old); err != nil {
			return err
		}
		i.Record.What = fmt.Sprintf("added %d of %d entries of %s", i.report.Added, i.report.Entries, i.in.Path)
		if i.report.Added == 0 {
			return listedit.ErrUnchanged
		}
		return nil
	})
	if err != nil {
		return err
	}
	if change.Changed {
		i.report.Gate = i.Rescan(i.List.Name)
	}
	return nil
}

// begin begins an attempt with nothing read. There are several if others change a managed list
// meanwhile: then the input is read again, of which the first attempt keeps a copy.
func (i *importRun) begin(ctx context.Context) (err error) {
	*i.report, i.present, i.excepts = i.begun, newEntrySet(), false
	switch {
	case !i.List.Managed:
	case i.spool == nil:
		i.spool, err = session.UnnamedFile()
		i.in.Reader = io.TeeReader(i.in.Reader, i.spool)
	default:
		_, err = i.spool.Seek(0, io.SeekStart)
		i.in.Reader = listfiles.Stoppable(ctx, i.spool)
	}
	return err
}

// end removes the copy of the input.
func (i *importRun) end() {
	if i.spool != nil {
		_ = i.spool.Close()
	}
}

// readPresent collects the entries of the list's files. It reads old in place of the file
// that is being changed.
func (i *importRun) readPresent(ctx context.Context, old io.Reader) error {
	note := func(e listfile.Entry) error {
		i.present.add(listfiles.Written(e))
		i.excepts = i.excepts || e.Exception
		return nil
	}
	for e, err := range listfile.NewReader(old, i.List.Options).All() {
		if err == nil {
			err = note(e)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", term.ShortPath(i.File), err)
		}
	}
	s := &listfiles.Scan{Ctx: ctx, Bar: i.bar, Stderr: i.Stderr}
	for _, path := range i.List.Paths {
		if path == i.File {
			continue
		}
		if _, err := s.File(setup.Opener(i.List.List), path, i.List.Options, note, nil); err != nil {
			return err
		}
	}
	return nil
}

// addAll calls yield with each line to be added.
func (i *importRun) addAll(yield func(line string) error) error {
	entries := listfile.NewReader(i.in, i.options)
	entries.Problem = func(p listfile.Problem) { i.leaveOut(session.NewProblemAt(i.in.Path, p)) }
	var failed error
	for e, err := range entries.All() {
		if err == nil {
			err = i.addEntry(e, yield)
		}
		if failed = err; err != nil {
			break
		}
	}
	result := entries.Result()
	i.report.ReadReport = session.NewReadReport(result)
	if failed != nil {
		return fmt.Errorf("reading %s: %w", i.in.Path, failed)
	}
	if refused := session.RefusedBecause(result); refused != "" {
		return fmt.Errorf("%s: of %d lines %d are invalid: is the format right? spamgate lists lint %[1]s says what is wrong",
			i.in.Path, result.Entries+result.Invalid, result.Invalid)
	}
	return nil
}

// addEntry calls yield with the line of one entry, unless the list has it or cannot
// take it.
func (i *importRun) addEntry(e listfile.Entry, yield func(line string) error) error {
	if i.recipient != "" {
		e.For = i.recipient
	}
	if i.present.has(listfiles.Written(e)) {
		i.report.Present++
		return nil
	}
	line, err := i.line(e)
	if err != nil {
		i.report.NotTaken++
		i.leaveOut(session.ProblemAt{Line: e.Line, Text: listfiles.Written(e), What: err.Error()})
		return nil
	}
	i.present.add(listfiles.Written(e))
	if e.Defer {
		i.report.Deferring++
	}
	if e.Exception {
		i.excepts = true
		if i.present.has(opposite(e)) {
			i.report.Cancelling++
		}
	}
	i.report.Added++
	return yield(line)
}

func (i *importRun) leaveOut(p session.ProblemAt) {
	p.File = i.in.Path
	if len(i.report.Problems) < maxImportProblems {
		i.report.Problems = append(i.report.Problems, p)
	}
}

// line formats an entry for the list.
func (i *importRun) line(e listfile.Entry) (string, error) {
	if err := i.guarded.Check(i.List, e); err != nil {
		return "", err
	}
	if i.excepts && !e.Exception && i.present.has(opposite(e)) {
		return "", fmt.Errorf("the exception %s in the list cancels it; remove that first", opposite(e))
	}
	if listfile.Text(e, i.List.Options) == "" {
		return "", errors.New("there is no way to write it in this list")
	}
	n := listfile.LineOf(e, i.List.Options)
	n.Reason = cmp.Or(n.Reason, i.reason)
	if _, err := n.Parse(i.List.Options); err != nil {
		return "", err
	}
	return n.String(), nil
}

func (i *importRun) print(w, stderr io.Writer) {
	r := i.report
	for _, p := range r.Problems {
		fmt.Fprintln(stderr, p)
	}
	if more := r.Invalid + r.Unsupported + r.NotTaken - len(r.Problems); more > 0 {
		fmt.Fprintf(stderr, "%s: %s more; see spamgate lists lint\n", term.ShortPath(r.From), text.Count(more, "line", "lines"))
	}
	fmt.Fprintf(w, "%s: %s\n", term.ShortPath(r.From), r.Describe())
	for _, note := range r.Notes {
		fmt.Fprintf(w, "  %s\n", note)
	}
	fmt.Fprintf(w, "%s: %d %sadded to list %s, %d already there, %d not taken\n", term.ShortPath(r.File), r.Added, session.Would(r.DryRun), r.List, r.Present, r.NotTaken)
	if r.Cancelling > 0 {
		fmt.Fprintf(w, "  exceptions among them that cancel entries which are there: %d\n", r.Cancelling)
	}
	if r.Deferring > 0 {
		fmt.Fprintf(w, "  %d of them asked to be deferred; here list %s says what becomes of them\n", r.Deferring, r.List)
	}
	session.PrintOutcome(w, r.DryRun, r.Added > 0, r.Gate)
}

// entrySet is a set of entries in normal form. It stores two 64-bit hashes of each, with
// seeds of this process: ten million entries take about 400 MiB. A collision of both hashes
// is not to be expected.
type entrySet struct {
	seeds  [2]maphash.Seed
	hashes map[[2]uint64]struct{}
}

func newEntrySet() entrySet {
	return entrySet{[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, map[[2]uint64]struct{}{}}
}

func (s entrySet) hash(entry string) [2]uint64 {
	return [2]uint64{maphash.String(s.seeds[0], entry), maphash.String(s.seeds[1], entry)}
}

func (s entrySet) add(entry string) { s.hashes[s.hash(entry)] = struct{}{} }

func (s entrySet) has(entry string) bool {
	_, ok := s.hashes[s.hash(entry)]
	return ok
}
