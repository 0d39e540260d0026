package lists

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/internal/cli/local"
	"spamgate/internal/listcompare"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newListsDedupeCommand() *cobra.Command {
	var o listsFlags
	d := &dedupe{}
	cmd := &cobra.Command{
		Use:   "dedupe [--list NAME] [--expired]",
		Short: "Remove entries that other entries make superfluous",
		Long: `Remove entries without which every sender's address is decided as before: with
the same action, at each stage and listener, now and when entries expire. Such
an entry is repeated, or a broader entry covers it, of its list or of another
one that does at least as much, and no exception or opposite list comes between.
"lists overlap" counts what lists have in common.

The reply and the log then name the other entry with its reason. Tags and logs
of lists that monitor keep their list. In headers, what only looks like an
address (in a display name) is looked up by entries of whole addresses, so
there a broader entry does not count.

Lists from a URL make nothing superfluous unless --fetched is given, since their
next update may remove an entry. They are never changed, nor are packed files
and other formats: the command names them. It changes nothing while a list is
held, pinned with changes waiting, or unreadable. In lists with
per_recipient = true only expired entries are superfluous.

Exit codes: 0 success; 2 an error.`,
		Example: `  spamgate lists dedupe --dry-run
  spamgate lists dedupe --list blocked --expired --reason "spring cleaning"`,
		Args: cobra.NoArgs,
	}
	cmd.Flags().StringVarP(&o.list, "list", "l", "", "remove only entries of the list `NAME`")
	cmd.Flags().BoolVar(&d.expired, "expired", false, "remove expired entries and exceptions, too")
	cmd.Flags().BoolVar(&d.fetched, "fetched", false, "let entries of lists from a URL make others superfluous")
	cmd.Flags().StringVarP(&d.why, "reason", "r", "", "`TEXT` for the audit log: why")
	o.addDryRun(cmd)
	o.addJSON(cmd)
	o.runs(cmd, func(s *session, _ []string) error {
		d.session = s
		report, err := d.run()
		if err != nil {
			return err
		}
		return s.printChange(report, report.print)
	})
	return cmd
}

// dedupe is one run of dedupe.
type dedupe struct {
	*session
	expired, fetched bool
	why              string

	lists  []*listfiles.List
	finder *listcompare.Superfluous
	report *dedupeReport
}

// dedupeReport is the output of dedupe.
type dedupeReport struct {
	DryRun  bool          `json:"dry_run"`
	Removed []dedupeEntry `json:"removed"`
	Skipped []string      `json:"skipped,omitempty"` // lists and files that are not changed, with the reason
	Gate    *local.Answer `json:"gate,omitempty"`
}

// dedupeEntry is an entry that is removed.
type dedupeEntry struct {
	listfiles.EntryInfo
	Expired bool   `json:"expired,omitempty"`
	By      string `json:"covered_by,omitempty"`
	ByList  string `json:"covered_by_list,omitempty"`

	by listcompare.Cover
}

// why returns why an entry is removed.
func (e *dedupeEntry) why() string {
	switch {
	case e.Expired:
		return "expired " + e.Until
	case e.By == e.Entry && e.ByList == e.List:
		return "repeated"
	case e.ByList == e.List:
		return "covered by " + e.By
	}
	return fmt.Sprintf("covered by %s of list %s", e.By, e.ByList)
}

func (r *dedupeReport) print(w io.Writer) {
	for i := range r.Removed {
		e := &r.Removed[i]
		term.PrintWrapped(w, e.Place()+": ", fmt.Sprintf("%s: %s", e.Text(), e.why()))
	}
	for _, s := range r.Skipped {
		term.PrintWrapped(w, "skipped: ", s)
	}
	would := "removed"
	if r.DryRun {
		would = "would be removed"
	}
	fmt.Fprintf(w, "%s %s\n", text.Count(len(r.Removed), "entry", "entries"), would)
	printOutcome(w, r.DryRun, len(r.Removed) > 0, r.Gate)
}

// dedupeFile is a file that is to be changed.
type dedupeFile struct {
	list    *listfiles.List
	path    string
	sum     string // the SHA-256 of what was read
	entries []dedupeEntry
}

func (d *dedupe) run() (*dedupeReport, error) {
	if d.list != "" {
		if _, err := listfiles.Find(d.config, d.list); err != nil {
			return nil, err
		}
	}
	if err := d.checkLive(); err != nil {
		return nil, err
	}
	d.report = &dedupeReport{DryRun: d.dryRun, Removed: []dedupeEntry{}}
	if err := d.read(); err != nil {
		return nil, err
	}
	files, err := d.find()
	if err != nil {
		return nil, err
	}
	gate := local.DialGate(d.config)
	defer gate.Close()
	for i, f := range files {
		if err := d.change(f, gate); err != nil {
			if i > 0 && !d.dryRun {
				err = fmt.Errorf("%w; changed before that: %s", err, shortenAll(paths(files[:i])))
			}
			return nil, err
		}
		d.report.Removed = append(d.report.Removed, f.entries...)
	}
	if !d.dryRun && files != nil {
		d.report.Gate = d.rescan(gate, files)
	}
	return d.report, nil
}

func paths(files []*dedupeFile) (paths []string) {
	for _, f := range files {
		paths = append(paths, f.path)
	}
	return paths
}

// rescan has the gate read the changed lists. The answer is of the first that is not live, if
// there is one.
func (d *dedupe) rescan(gate local.RunningGate, files []*dedupeFile) (answer *local.Answer) {
	for _, f := range files {
		if answer = gate.Rescan(d, f.list.Name); answer.Error != "" {
			break
		}
	}
	return answer
}

// checkLive returns an error unless what is on disk is what serves: decisions could change
// otherwise.
func (d *dedupe) checkLive() error {
	status, _, err := askStatus(d, d.config, d.stderr)
	if err != nil {
		return err
	}
	for _, l := range status.Lists {
		if l.Error != "" {
			return fmt.Errorf("nothing is removed, since what list %s has on disk does not serve: %s", l.Name, l.Error)
		}
	}
	return nil
}

// read reads all lists.
func (d *dedupe) read() error {
	for _, l := range listfiles.WithFiles(d.config) {
		at, err := listfiles.New(l)
		if err != nil {
			return fmt.Errorf("nothing is removed: %w", err)
		}
		d.lists = append(d.lists, at)
	}
	d.finder = listcompare.NewSuperfluous(d.config, listfiles.NewKey(), d.fetched)
	guarded := listfiles.NewProtection(d.config)
	scan := listfiles.NewScan(d, d.lists, d.stderr)
	defer scan.Bar.Finish()
	for _, l := range d.lists {
		err := d.finder.Add(scan, l, func(e listfile.Entry) bool { return guarded.LeftOut(l, e).Omitted() })
		if err != nil {
			return fmt.Errorf("nothing is removed: %w", err)
		}
	}
	return nil
}

// find finds the superfluous entries, the last list's first: of equal entries of several lists
// the first one's stays, which is the one that replies name.
func (d *dedupe) find() (files []*dedupeFile, err error) {
	var search []*listfiles.List
	for _, l := range d.lists {
		packed, err := hasPacked(l)
		switch {
		case err != nil:
			return nil, fmt.Errorf("nothing is removed: %w", err)
		case d.list != "" && l.Name != d.list:
		case l.PerRecipient && !d.expired:
			d.skip("list " + l.Name + " is by recipient; with --expired those that have ended are removed")
		case l.URL != "":
			d.skip("list " + l.Name + " comes from a URL")
		case packed != "":
			d.skip(fmt.Sprintf("list %s: %s is packed", l.Name, term.ShortPath(packed)))
		case !l.ReadsPlain():
			d.skip(fmt.Sprintf("list %s has the format %q, which is read and never written", l.Name, l.Format))
		default:
			search = append(search, l)
		}
	}
	scan := listfiles.NewScan(d, search, d.stderr)
	defer scan.Bar.Finish()
	for i, l := range slices.Backward(d.lists) {
		if !slices.Contains(search, l) {
			continue
		}
		for n, path := range l.Paths {
			f, err := d.findIn(scan, i, n, path)
			if err != nil {
				return nil, fmt.Errorf("nothing is removed: %w", err)
			}
			if len(f.entries) > 0 {
				files = append(files, f)
			}
		}
	}
	for _, f := range files {
		for i := range f.entries {
			if e := &f.entries[i]; !e.Expired {
				by := d.finder.Stays(e.by)
				e.By, e.ByList = by.Key, by.List.Name
			}
		}
	}
	slices.Reverse(files) // as the configuration has the lists
	return files, nil
}

// hasPacked returns the first of the list's files that is packed; "" if none is.
func hasPacked(l *listfiles.List) (string, error) {
	for _, path := range l.Paths {
		f, err := setup.Opener(l.List).Open(path)
		if err != nil {
			return "", err
		}
		content, packed, err := listfile.Unpack(f, l.MaxBytes)
		if err == nil {
			err = content.Close()
		}
		f.Close()
		if packed || err != nil {
			return path, err
		}
	}
	return "", nil
}

func (d *dedupe) skip(what string) { d.report.Skipped = append(d.report.Skipped, what) }

// findIn finds the superfluous entries in the n-th file of the i-th list.
func (d *dedupe) findIn(scan *listfiles.Scan, i, n int, path string) (*dedupeFile, error) {
	l := d.lists[i]
	f := &dedupeFile{list: l, path: path}
	var err error
	if f.sum, err = sumOfFile(l, path); err != nil {
		return nil, err
	}
	_, err = scan.File(setup.Opener(l.List), path, l.Options, func(e listfile.Entry) error {
		one := dedupeEntry{EntryInfo: listfiles.NewEntryInfo(l.Name, path, e)}
		if (listfiles.Located{Entry: e}).Over() {
			if one.Expired = d.expired; d.expired {
				f.entries = append(f.entries, one)
			}
			return nil
		}
		if l.PerRecipient {
			return nil
		}
		by, ok, err := d.finder.Remove(i, n, e)
		if ok {
			one.by = by
			f.entries = append(f.entries, one)
		}
		return err
	}, nil)
	return f, err
}

// change removes the entries from one file.
func (d *dedupe) change(f *dedupeFile, gate local.RunningGate) error {
	e := d.edit(f.list, f.path, d.why, gate)
	splice := listedit.Splice{Remove: map[int]bool{}, Empty: listedit.NoEntries}
	for _, one := range f.entries {
		splice.Remove[one.Line] = true
	}
	_, err := e.rewrite(d, func(old io.ReadSeeker, w io.Writer) error {
		e.record.Each = nil
		for i := range f.entries {
			e.record.Each = append(e.record.Each, fmt.Sprintf("removed %s, %s", f.entries[i].Text(), f.entries[i].why()))
		}
		if sum, err := hexSum(old); err != nil || sum != f.sum {
			return errors.Join(err, listedit.ErrChanged)
		}
		if _, err := old.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := splice.Copy(w, old)
		return err
	})
	return err
}
