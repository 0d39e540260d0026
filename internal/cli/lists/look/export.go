package look

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
	"spamgate/internal/atomicfile"
	"spamgate/internal/cli"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

type listsExportOptions struct {
	session.Flags
	format        string
	json          bool
	out           string
	dotSubdomains bool
}

func newListsExportCommand() *cobra.Command {
	var o listsExportOptions
	cmd := &cobra.Command{
		Use:   "export --format F | --json [--list NAME] [--out FILE]",
		Short: "Write a list for another program",
		Long: `Write a list in the format of another program:

  plain    the gate's own format, with everything
  postfix  an access(5) table, for check_sender_access
  rbldnsd  a dnset of rbldnsd
  rpz      a response policy zone
  rspamd   a map of regular expressions for the module multimap
  json     an array of strings

The default list is the only block list. The other program then decides about a
sender as the gate does by this list alone. Allow lists and other block lists
are lists of their own: export each, and ask the allow lists first. In an
export of an allow list an entry lets senders through.

What the gate leaves out (protected domains, <> and name@ in a list from a URL,
expired and invalid lines) is left out here, too, and counted on standard error.
If the gate holds an update, the version that serves is written.

What a format cannot express never makes the other program refuse more. Such an
entry is left out, and reported on standard error with file and line. If it is
an exception, what it is an exception to is left out for its domain. Formats
without expiry have no entries that expire, and exceptions without their end.

A list with per_recipient = true can be written as plain only, and a table for
Postfix counts for all recipients: to judge by recipient, let Postfix ask the
gate as a policy service. An allow list with proven_by can be written as plain
and as json: other programs ask for no proof.

A table for Postfix works with its default settings and recipient_delimiter = +.
It leaves out what is said of a domain and not of its subdomains; see
--dot-subdomains. The serial number of a response policy zone is the time in
seconds. With --out it stays the same while the zone does.

Exit codes: 0 all entries were written; 1 some could not be expressed; 2 an
error.`,
		Example: `  spamgate lists export --format postfix --list blocked > access
  spamgate lists export --format rpz --list blocked --out blocked.zone
  spamgate lists export -f postfix -l personal --out /etc/postfix/spamgate`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "the same as --format json")
	cmd.Flags().StringVarP(&o.List, "list", "l", "", "the `NAME` of the list")
	cmd.Flags().StringVarP(&o.format, "format", "f", "", "the format (required): `F` is\n"+writableFormats())
	cmd.Flags().StringVarP(&o.out, "out", "o", "", "write to this `FILE`, which appears when it is complete\n(default: standard output)")
	cmd.Flags().BoolVar(&o.dotSubdomains, "dot-subdomains", false, "for a Postfix with smtpd_access_maps taken out of\nparent_domain_matches_subdomains: .d.example is for\nthe subdomains, d.example for the domain alone")
	o.Runs(cmd, func(s *session.Session, _ []string) error { return listsExport(s, o) })
	return cmd
}

func writableFormats() string {
	var names []string
	for _, f := range listfile.Writable {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// maxLeftOut bounds the entries that are shown because a format cannot express them.
const maxLeftOut = 20

func listsExport(s *session.Session, o listsExportOptions) error {
	if o.json {
		if o.format != "" && o.format != string(listfile.JSON) {
			return fmt.Errorf("--format %s and --json: give one of them", o.format)
		}
		o.format = string(listfile.JSON)
	}
	format := listfile.Format(o.format)
	switch {
	case o.format == "":
		return fmt.Errorf("no format: give one with --format: %s", writableFormats())
	case o.dotSubdomains && format != listfile.PostfixAccess:
		return errors.New("--dot-subdomains is for --format postfix alone")
	}
	list, err := listToExport(s.Config, o.List)
	if err != nil {
		return err
	}
	if err := canExport(list, format); err != nil {
		return err
	}
	if o.out == "-" {
		o.out = ""
	}
	if l := listWithFile(s.Config, o.out); l != nil {
		return fmt.Errorf("--out %s: that is a file of list %s, which would be lost: name another", o.out, l.Name)
	}
	e := &exportRun{Session: s, list: list, options: exportOptions(s.Config, list, format, o.dotSubdomains)}
	if e.source, err = openServed(s, list); err != nil {
		return err
	}
	if err := e.source.Sort(); err != nil {
		return err
	}
	if format == listfile.PostfixAccess {
		e.sayPolicies()
	}
	e.source.WithoutReasons = format != listfile.Plain && !list.PublicReason
	if o.out == "" {
		if _, err = e.write(s.Cmd.OutOrStdout()); err != nil {
			err = fmt.Errorf("not all of the list is written: %w", err)
		}
	} else {
		err = e.writeFile(s, o.out)
	}
	if err != nil {
		return err
	}
	return e.finish()
}

// canExport returns an error if a format has no way to say what a list asks for.
func canExport(l config.List, format listfile.Format) error {
	switch {
	case !slices.Contains(listfile.Writable, format):
		return fmt.Errorf("--format %s: use one of %s", format, writableFormats())
	case l.PerRecipient && format != listfile.Plain:
		return fmt.Errorf("each entry of list %s counts for some recipients, which %s cannot express: use --format plain, or let the other server ask the gate (docs/policy-service.md)", l.Name, format)
	case len(l.ProvenBy) > 0 && format != listfile.Plain && format != listfile.JSON:
		return fmt.Errorf("an entry of list %s counts only if %s proves the sender, which %s cannot express: everybody who writes such a sender would pass; use --format plain or json",
			l.Name, strings.Join(l.ProvenBy, " or "), format)
	}
	return nil
}

// exportOptions returns how a list is written.
func exportOptions(c *config.Config, l config.List, format listfile.Format, dotSubdomains bool) listfile.WriteOptions {
	return listfile.WriteOptions{
		Format: format, Allow: l.Type == "allow", Exact: l.Match == "exact",
		DotSubdomains: dotSubdomains, Action: postfixAction(c, l), Serial: uint32(time.Now().Unix()),
	}
}

// postfixAction returns the action of a Postfix table that does what the list does: WARN
// lets mail through and logs it. "" is the usual one.
func postfixAction(c *config.Config, l config.List) string {
	switch a := verdict.ActionOf(l.Action); {
	case c.Policy.Mode == "monitor", a != verdict.Accept && !a.Refuses() && !a.Drops():
		return "WARN"
	case a != verdict.Accept && a != verdict.Reject:
		return strings.ToUpper(l.Action)
	}
	return ""
}

// listToExport returns the named list, or else the only block list.
func listToExport(c *config.Config, name string) (config.List, error) {
	if name == "" {
		var blocks []string
		for _, l := range listfiles.WithFiles(c) {
			if l.Type == "block" {
				blocks = append(blocks, l.Name)
			}
		}
		if len(blocks) != 1 {
			return config.List{}, fmt.Errorf("which list? name one with --list: %s", strings.Join(setup.ListNames(listfiles.WithFiles(c)), ", "))
		}
		name = blocks[0]
	}
	return listfiles.Find(c, name)
}

// listWithFile returns the list to which the file belongs, or nil.
func listWithFile(c *config.Config, path string) *listfiles.List {
	for _, l := range c.Lists {
		list, err := listfiles.New(l)
		if err == nil && slices.ContainsFunc(list.Paths, func(file string) bool { return atomicfile.SameFile(file, path) }) {
			return list
		}
	}
	return nil
}

// exportRun is one run of export.
type exportRun struct {
	*session.Session
	list    config.List
	options listfile.WriteOptions
	source  *exportSource
	written int
	left    int
}

// writeFile writes the list to a file. A zone has the serial number of the file before if
// nothing else has changed, and a greater one if something has.
func (e *exportRun) writeFile(ctx context.Context, path string) error {
	target, perm, err := cli.CheckTarget("--out", path)
	if err != nil {
		return err
	}
	if err := e.followSerial(target); err != nil {
		return err
	}
	_, err = cli.ReplaceFile(ctx, target, perm, e.write)
	return err
}

// followSerial chooses the serial number by the zone that the file has, if it has one.
func (e *exportRun) followSerial(path string) error {
	f, err := os.Open(path)
	if err != nil || e.options.Format != listfile.RPZ {
		return nil // there is none, or one that nobody can load
	}
	defer f.Close()
	before, ok := listfile.ZoneSerial(f)
	if !ok {
		return nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil
	}
	same := sameWriter{file: bufio.NewReader(f)}
	fresh := e.options.Serial
	e.options.Serial = before
	if _, err := listfile.Write(&same, e.source.Entries(), e.options, nil); err != nil && !errors.Is(err, errOther) {
		return err
	}
	if err := e.source.Err; err != nil {
		return err
	}
	if !same.ended() {
		e.options.Serial = laterSerial(before, fresh)
	}
	return nil
}

// laterSerial returns the serial number if it is later than before (RFC 1982), else the
// one after before.
func laterSerial(before, serial uint32) uint32 {
	if int32(serial-before) > 0 {
		return serial
	}
	return before + 1
}

// errOther ends a comparison.
var errOther = errors.New("the file has something else")

// sameWriter compares what is written with a file.
type sameWriter struct {
	file  *bufio.Reader
	other bool
}

func (w *sameWriter) Write(p []byte) (int, error) {
	had := make([]byte, len(p))
	if _, err := io.ReadFull(w.file, had); err != nil || string(had) != string(p) {
		w.other = true
		return 0, errOther
	}
	return len(p), nil
}

// ended reports whether the file has what was written, and nothing more.
func (w *sameWriter) ended() bool {
	_, err := w.file.ReadByte()
	return !w.other && err == io.EOF
}

// write writes the list.
func (e *exportRun) write(w io.Writer) (int64, error) {
	out := bufio.NewWriter(w)
	var err error
	e.written, err = listfile.Write(out, e.source.Entries(), e.options, e.leave)
	if err == nil {
		err = out.Flush()
	}
	return 0, errors.Join(e.source.Err, err)
}

// leave reports an entry that the format cannot express.
func (e *exportRun) leave(p listfile.Problem) {
	if e.left++; e.left <= maxLeftOut {
		fmt.Fprintln(term.Escape(e.Stderr), session.NewProblemAt(e.source.File, p))
	}
}

// sayRest prints what was not written, and what the other program has to know.
func (e *exportRun) sayRest() {
	if more := e.left - maxLeftOut; more > 0 {
		fmt.Fprintf(e.Stderr, "%d more\n", more)
	}
	e.source.sayLeftOut(e.Stderr)
	if e.options.Action == "WARN" || e.options.Action == "DISCARD" {
		e.sayAction()
	}
}

// finish prints what was written, and what was not.
func (e *exportRun) finish() error {
	e.sayRest()
	fmt.Fprintf(e.Stderr, "list %s: %s written as %s", e.list.Name, text.Count(e.written, "entry", "entries"), e.options.Format)
	if e.left > 0 {
		fmt.Fprintf(e.Stderr, ", %d left out\n", e.left)
		return cli.ErrNo
	}
	fmt.Fprintln(e.Stderr)
	return nil
}

// sayPolicies says that the table is for all recipients, if the gate has other policies for
// some.
func (e *exportRun) sayPolicies() {
	if n := len(e.Config.RecipientPolicies); n > 0 {
		fmt.Fprintf(e.Stderr, "list %s: the table counts for all recipients, also for those of %s; a policy service (docs/policy-service.md) judges by recipient\n",
			e.list.Name, text.Count(n, "recipient_policy", "recipient policies"))
	}
}

// sayAction says that the gate does not refuse the senders of the list, if the format
// cannot say it.
func (e *exportRun) sayAction() {
	switch e.options.Format {
	case listfile.RBLDNSD, listfile.RPZ, listfile.Rspamd:
		fmt.Fprintf(e.Stderr, "list %s: the gate does not refuse these senders (action = %q, mode = %q):\nsee that the program that reads this does not, either\n",
			e.list.Name, e.list.Action, e.Config.Policy.Mode)
	}
}
