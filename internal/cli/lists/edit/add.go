package edit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
	"spamgate/internal/term"
	"spamgate/internal/text"
	"spamgate/internal/words"
	"spamgate/smtpfilter"
)

type listsAddOptions struct {
	session.Flags
	note, until string
}

func newListsAddCommand() *cobra.Command {
	var o listsAddOptions
	cmd := &cobra.Command{
		Use:   "add ENTRY... --reason TEXT [--list NAME]",
		Short: "Add entries to a list",
		Long: `Add entries to a list, each on its own line at the end of the file. The default
list is the only block list that can be changed.

An entry is an address (user@spam.example), a domain with its subdomains
(spam.example), a domain alone (@spam.example), its subdomains alone
(*.spam.example), a name at any domain (newsletter@), the null sender ('<>'), or
an exception to the list's other entries ('!press@spam.example').

In a list with per_recipient = true an entry counts for the recipients of --for:
an address, @example.net for a domain, and the other forms of an entry. The
default list is then the only such block list.

An entry that is in the list already keeps its place, and gets the new reason
and end. If one of several entries is invalid, none is added.

Entries of a file are for "spamgate lists import".

Refused clients see the reason, unless the list has public_reason = false. They
never see the note.

Exit codes: 0 the entries are in the list; 2 an error, and nothing has changed
unless the error says so.`,
		Example: `  spamgate lists add spam.example --reason "unsolicited mail"
  spamgate lists add '!press@spam.example' --reason "we want these"
  spamgate lists add user@example.net --list allowed --reason "asked by sales"
  spamgate lists add shop.example --for ann@example.net --reason "her wish"
  spamgate lists add '*.bulk.example' --reason "outbreak" --until 24h`,
		Args: needEntries,
	}
	addTarget(&o.Flags, cmd)
	cmd.Flags().StringVar(&o.note, "note", "", "private `TEXT`, for logs and tools only")
	cmd.Flags().StringVar(&o.until, "until", "", "when it ends, as `TIME`: 24h, 30d, 2026-12-31 (to the end\nof that local day) or 2026-12-31T18:00:00Z\n(default: never)")
	o.AddChange(cmd, "why, as `TEXT`; also for the audit log (required)")
	o.Runs(cmd, func(s *session.Session, args []string) error { return listsAdd(s, o, args) })
	return cmd
}

// addReport is the output of add.
type addReport struct {
	List    string        `json:"list"`
	File    string        `json:"file"`
	DryRun  bool          `json:"dry_run"`
	Changed bool          `json:"changed"`
	Entries []addedEntry  `json:"entries"`
	Gate    *local.Answer `json:"gate,omitempty"` // unless nothing was changed
}

// addedEntry describes what was done with one entry.
type addedEntry struct {
	listfiles.EntryInfo
	What      string                `json:"what"`
	Meaning   string                `json:"meaning"`
	CoveredBy []listfiles.EntryInfo `json:"covered_by,omitempty"`
	Remarks   []string              `json:"remarks,omitempty"`
}

func listsAdd(s *session.Session, o listsAddOptions, args []string) error {
	if strings.TrimSpace(o.Reason) == "" {
		return errors.New(`no reason: give one, as in --reason "unsolicited mail"`)
	}
	list, ran, err := listToAddTo(s)
	if err != nil || ran {
		return err
	}
	if err := checkSides(s, list); err != nil {
		return err
	}
	entries, err := newEntries(s, o, args)
	if err != nil {
		return err
	}
	lines, err := managed.Lines(s.Config, list, entries)
	if err != nil {
		return err
	}
	file, err := session.FileToEdit(list, o.File)
	if err != nil {
		return err
	}
	e := &entryEdit{s.Edit(list, file)}
	report, err := e.add(s, entries, lines)
	if err != nil {
		return err
	}
	return s.PrintChange(report, report.print)
}

// newEntries returns the entries to be added, which are not checked.
func newEntries(s *session.Session, o listsAddOptions, args []string) (entries []managed.NewEntry, err error) {
	n := managed.NewEntry{Name: managed.Name{For: s.Recipient}, Reason: o.Reason, Note: o.note}
	if o.until != "" {
		if n.Until, err = words.ParseUntil(o.until, time.Now()); err != nil {
			return nil, fmt.Errorf("--until: %w", err)
		}
	}
	for _, n.Entry = range args {
		entries = append(entries, n)
	}
	return entries, nil
}

// add adds the entries, of which lines are the lines, and reports how they relate to other entries.
func (e *entryEdit) add(ctx context.Context, entries []managed.NewEntry, lines []listfile.Line) (*addReport, error) {
	additions, changed, err := e.addEntries(ctx, entries, lines)
	if err != nil {
		return nil, err
	}
	report := &addReport{List: e.List.Name, File: e.File, DryRun: e.DryRun, Changed: changed}
	var refused []error
	for _, a := range additions {
		if a.What == listedit.Refused {
			refused = append(refused, e.cancelled(a))
		}
		report.Entries = append(report.Entries, e.describeAddition(a))
	}
	if refused != nil {
		return nil, errors.Join(refused...)
	}
	if err := e.describeRelations(ctx, report, additions); err != nil {
		if !changed || e.DryRun {
			return nil, err
		}
		listfiles.RelationsUnknown(e.Stderr, err)
	}
	if changed {
		report.Gate = e.Rescan(e.List.Name)
	}
	return report, nil
}

// cancelled returns the error for an entry that an exception in the list cancels.
func (e *entryEdit) cancelled(a listedit.Addition) error {
	return fmt.Errorf("%s: the exception %s at %s:%d cancels it; remove that first",
		listfiles.Written(a.New), opposite(a.New), term.ShortPath(e.File), a.Line)
}

// addEntries adds the entries.
func (e *entryEdit) addEntries(ctx context.Context, entries []managed.NewEntry, lines []listfile.Line) (additions []listedit.Addition, changed bool, err error) {
	if e.List.Managed {
		return e.addManaged(ctx, entries, lines)
	}
	change, err := e.Rewrite(ctx, func(old io.ReadSeeker, w io.Writer) error {
		var err error
		additions, err = e.addLines(old, w, lines)
		return err
	})
	return additions, change.Changed, err
}

// addLines copies a list with the entries, and says for the audit log what is added.
func (e *entryEdit) addLines(old io.ReadSeeker, w io.Writer, entries []listfile.Line) ([]listedit.Addition, error) {
	additions, err := listedit.Add(old, w, e.List.Options, entries)
	var words []string
	for _, a := range additions {
		if a.What == listedit.Added || a.What == listedit.Updated {
			words = append(words, listfiles.Described(a.What, a.New))
		}
	}
	e.Describe(words)
	return additions, err
}

// describeAddition returns the report on one entry.
func (e *entryEdit) describeAddition(a listedit.Addition) addedEntry {
	a.New.Line = a.Line
	d := addedEntry{EntryInfo: listfiles.NewEntryInfo(e.List.Name, e.File, a.New), What: a.What, Meaning: meaning(a.New)}
	if len(a.Extra) > 0 && a.What == listedit.Updated {
		d.Remarks = append(d.Remarks, "removed "+text.Count(len(a.Extra), "repeated line", "repeated lines")+" of it")
	}
	if a.What == listedit.Updated && a.Was.Until != 0 && a.New.Until == 0 {
		d.Remarks = append(d.Remarks, "it no longer ends: the old line said "+listfile.FormatUntil(a.Was.Until))
	}
	if a.What == listedit.Updated && a.Was.Reason != "" && a.Was.Reason != a.New.Reason {
		d.Remarks = append(d.Remarks, "the reason was: "+a.Was.Reason)
	}
	if e.List.Type == "block" && e.List.PublicReason && !a.New.Exception {
		d.Remarks = append(d.Remarks, unlikeShown(a.New.Reason)...)
	}
	if domain, ok := session.CoversTenants(a.New); ok && !a.New.Exception {
		d.Remarks = append(d.Remarks, "strangers have names of their own below "+domain+", and it covers them all;", "list theirs, or @"+domain+" for that name alone")
	}
	if e.List.Type == "allow" && !e.isSeen(a.New.Kind) {
		d.Remarks = append(d.Remarks, "no door sees it: mail is judged only over DNS, which answers for domains,", "and with hashed_zone for addresses; see docs/dns-server.md")
	}
	switch {
	case a.New.Exception && a.Opposite != nil:
		d.Remarks = append(d.Remarks, fmt.Sprintf("it cancels line %d, which may as well go", a.Opposite.Line))
	case a.New.Exception && len(a.Covered) == 0 && len(e.List.Paths) == 1:
		d.Remarks = append(d.Remarks, "nothing in this list matches it, so the exception does nothing now", "(an exception does not reach other lists: for that add it to an allow list)")
	}
	return d
}

// unlikeShown returns remarks on a reason that refused clients will not see as written.
func unlikeShown(reason string) (remarks []string) {
	shown := smtpfilter.PublicText(reason)
	if shown == reason {
		return nil
	}
	if strings.IndexFunc(reason, func(r rune) bool { return r > '~' }) >= 0 {
		remarks = append(remarks, "SMTP replies are ASCII: clients see other characters of the reason as ?")
	}
	if over := utf8.RuneCountInString(reason) - len(shown); over > 0 {
		remarks = append(remarks, fmt.Sprintf("clients see the first %d characters of the reason, not the last %d", len(shown), over))
	}
	return append(remarks, "(what they are not to see goes into --note)")
}

// isSeen reports whether a listener or a door can obey an entry of the list, which is an allow list.
// In a zone of domains only entries for domains have an effect, in one of hashes also those for
// addresses.
func (e *entryEdit) isSeen(kind sender.Kind) bool {
	ofDomain := kind == sender.KindAtDomain || kind == sender.KindDomain || kind == sender.KindSubdomains
	return len(e.Config.Listeners) > 0 || slices.ContainsFunc(e.Config.Doors, func(d config.Door) bool {
		if len(d.Lists) > 0 && !slices.Contains(d.Lists, e.List.Name) {
			return false
		}
		if d.Table != config.TableDNSServer {
			return true
		}
		return !e.List.PerRecipient && (ofDomain && d.Zone != "" || kind == sender.KindAddress && d.HashedZone != "" && len(e.List.ProvenBy) == 0)
	})
}

// describeRelations adds to the report which other entries, of any list, match the same
// senders or let them pass.
func (e *entryEdit) describeRelations(ctx context.Context, report *addReport, additions []listedit.Addition) error {
	lists := listfiles.Readable(e.Config, e.Stderr)
	relations := listfiles.NewRelations()
	for _, a := range additions {
		relations.Ask(a.New)
	}
	if err := relations.Read(ctx, lists, e.Indexes(), e.editOf(report.Changed, additions), e.Stderr); err != nil {
		return err
	}
	for i, a := range additions {
		if a.New.Exception {
			continue
		}
		entry := &report.Entries[i]
		for _, f := range relations.Covering(a.New) {
			if f.List.Type == e.List.Type {
				entry.CoveredBy = append(entry.CoveredBy, f.At())
			}
		}
		if e.List.Type != "block" {
			continue
		}
		for _, f := range append(relations.Same(a.New), relations.Covering(a.New)...) {
			if f.List.Type == "allow" && (f.List.Override || listedit.Key(f.Entry) == listedit.Key(a.New)) {
				entry.Remarks = append(entry.Remarks, "its mail passes nevertheless"+ifProven(f.List.ProvenBy)+": "+f.At().String())
			}
		}
	}
	return nil
}

// ifProven says on what an entry of an allow list depends.
func ifProven(by []string) string {
	if len(by) == 0 {
		return ""
	}
	return ", if proven by " + strings.Join(by, " or ")
}

// editOf returns what the index of the list does not know yet.
func (e *entryEdit) editOf(changed bool, additions []listedit.Addition) []listfiles.Edit {
	if !changed || e.DryRun || e.List.Managed { // the gate has a new index already
		return nil
	}
	edit := listfiles.Edit{Path: e.File}
	for _, a := range additions {
		switch a.What {
		case listedit.Updated:
			edit.Replaced = append(edit.Replaced, a.Was.Line)
			edit.Removed = append(edit.Removed, a.Extra...)
		case listedit.Added:
		default:
			continue
		}
		a.New.Line = a.Line
		edit.Added = append(edit.Added, a.New)
	}
	return []listfiles.Edit{edit}
}

func (r *addReport) print(w io.Writer) {
	phrase := session.Would(r.DryRun)
	for i, e := range r.Entries {
		if i == maxShown {
			fmt.Fprintf(w, "and %s more: %s\n", text.Count(len(r.Entries)-i, "entry", "entries"), r.counts(r.Entries[i:]))
			break
		}
		switch e.What {
		case listedit.Added:
			fmt.Fprintf(w, "%s: %sadded to list %s, %s\n", e.Text(), phrase, r.List, e.Place())
		case listedit.Updated:
			fmt.Fprintf(w, "%s: %supdated in list %s, %s\n", e.Text(), phrase, r.List, e.Place())
		case listedit.Present:
			fmt.Fprintf(w, "%s: already listed at %s\n", e.Text(), e.Place())
		default:
			fmt.Fprintf(w, "%s: named twice\n", e.Text())
			continue
		}
		fmt.Fprintf(w, "  %s\n", e.Meaning)
		if e.Until != "" {
			fmt.Fprintf(w, "  until %s\n", e.Until)
		}
		printCovering(w, "also", e.CoveredBy)
		for _, remark := range e.Remarks {
			fmt.Fprintf(w, "  %s\n", remark)
		}
	}
	session.PrintOutcome(w, r.DryRun, r.Changed, r.Gate)
}

// maxShown is how many entries of a change are shown.
const maxShown = 100

// counts says what was done with some entries.
func (r *addReport) counts(entries []addedEntry) string {
	var parts []string
	for _, what := range []string{listedit.Added, listedit.Updated, listedit.Present, listedit.Twice} {
		n := 0
		for _, e := range entries {
			if e.What == what {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, text.Number(n)+" "+what)
		}
	}
	return strings.Join(parts, ", ")
}

// maxCovered is how many entries that cover another are named.
const maxCovered = 3

// printCovering names the entries that cover another.
func printCovering(w io.Writer, how string, entries []listfiles.EntryInfo) {
	for i, entryInfo := range entries {
		if i == maxCovered {
			fmt.Fprintf(w, "  and by %d more\n", len(entries)-i)
			break
		}
		fmt.Fprintf(w, "  %s covered by %s\n", how, entryInfo)
	}
}
