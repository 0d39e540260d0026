package versions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist/store"
	"spamgate/internal/admin"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/fetch"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newListsRollbackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollback LIST",
		Short: "Restore an earlier version of a list",
		Long: `Restore the files of an earlier version of a list: the version of --to, or else
the newest stored one that differs from the files on disk. A second rollback
without --to undoes the first; use --to to go further back. The gate stores the
last versions that were live ([state] history); --list-versions shows them.

The version's files that are missing now are written again. If the list has
files now that it did not have then, nothing is changed: move them away first.
Several files are written one after the other; after an error the same command
with --to finishes it.

For a list from a URL the copy is replaced. It is used until the server has
another version than at the last fetch.

Exit codes: 0 restored; 2 there is no such version, or an error.`,
		Example: `  spamgate lists rollback blocked --list-versions
  spamgate lists rollback blocked --dry-run
  spamgate lists rollback blocked --to 20261121T220000Z-0123456789ab`,
		Args: session.OneList,
	}
	var f session.Flags
	f.AddChange(cmd, session.ForAudit)
	r := &rollback{}
	cmd.Flags().StringVar(&r.to, "to", "", "the `VERSION` to restore; its beginning is enough")
	only := cmd.Flags().Bool("list-versions", false, "list the stored versions, and change nothing")
	cmd.MarkFlagsMutuallyExclusive("to", "list-versions")
	f.Runs(cmd, func(s *session.Session, args []string) error {
		l, err := listfiles.Find(s.Config, args[0])
		if err != nil {
			return err
		}
		r.Session = s
		if ran, err := s.AsOwner(l.Managed); ran || err != nil {
			return err
		}
		if err := r.load(l); err != nil {
			return listfiles.WithAuthority(err, listfiles.WhoOwns)
		}
		if *only {
			return r.printVersions()
		}
		result, err := r.run()
		if err != nil {
			return listfiles.WithAuthority(err, listfiles.WhoOwns)
		}
		return s.PrintChange(result, result.print)
	})
	return cmd
}

// rollback is one run of rollback.
type rollback struct {
	*session.Session
	to string

	target   *listfiles.List
	versions []store.VersionInfo // the newest first
	current  string              // the checksum of the files on disk; "" if they cannot be read
}

// load finds the list's files and its stored versions.
func (r *rollback) load(l config.List) error {
	l.Path = l.Files()
	var err error
	if r.target, err = listfiles.New(l); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrNoMatch) {
		return err
	}
	if l.Managed {
		return r.loadManaged()
	}
	if r.versions, err = session.KeptVersions(r.Config, l.Name); err != nil {
		return err
	}
	if len(r.target.Paths) == 0 {
		return nil // the list has gone, and is to come back
	}
	r.current, err = setup.Opener(r.target.List).ContentSum(r.target.Paths)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// versionLine is a stored version in the output.
type versionLine struct {
	Version string    `json:"version"`
	Time    time.Time `json:"time"`
	Entries int       `json:"entries"`
	Bytes   int64     `json:"bytes"`
	Files   []string  `json:"files"`
	OnDisk  bool      `json:"on_disk"` // it is what the files hold now
}

func (r *rollback) printVersions() error {
	lines := []versionLine{}
	for _, v := range r.versions {
		lines = append(lines, versionLine{v.ID, v.Time.UTC(), v.Entries, v.Bytes, v.Files, v.Sum == r.current})
	}
	if len(lines) == 0 && !r.JSON {
		return r.noVersion()
	}
	return r.Print(lines, func(w io.Writer) {
		fmt.Fprintf(w, "%-33s %-19s %11s %10s\n", "VERSION", "LIVE SINCE", "ENTRIES", "SIZE")
		for _, l := range lines {
			mark := ""
			if l.OnDisk {
				mark = " now"
			}
			fmt.Fprintf(w, "%-33s %-19s %11s %10s%s\n", l.Version, session.Clock(l.Time), text.Number(l.Entries), term.ByteSize(l.Bytes), mark)
			if !slices.Equal(l.Files, r.target.Paths) {
				term.PrintWrapped(w, "  other files than now: ", session.ShortenAll(l.Files))
			}
		}
	})
}

// noVersion returns the error that explains why no version can be restored.
func (r *rollback) noVersion() error {
	if r.Config.State.History == 0 || len(r.versions) == 0 {
		return fmt.Errorf("list %s: %w", r.target.Name, session.NoVersionKept(r.Config))
	}
	return fmt.Errorf("list %s: the one version that is kept is on disk already", r.target.Name)
}

// choose returns the version to restore.
func (r *rollback) choose() (store.VersionInfo, error) {
	if r.to == "" {
		i := slices.IndexFunc(r.versions, func(v store.VersionInfo) bool { return v.Sum != r.current })
		if i < 0 {
			return store.VersionInfo{}, r.noVersion()
		}
		return r.versions[i], r.tooFew(r.versions[i])
	}
	v, err := session.FindVersion(r.target.Name, r.versions, r.to)
	if err == nil && v.Sum == r.current {
		err = fmt.Errorf("list %s: version %s is on disk already", r.target.Name, v.ID)
	}
	return v, err
}

// tooFew refuses a version with at most 40% of the entries of another stored version, unless
// the user names it: it was most likely a mistake.
func (r *rollback) tooFew(v store.VersionInfo) error {
	const part = 0.4
	most := 0
	for _, other := range r.versions {
		most = max(most, other.Entries)
	}
	if v.Entries > 0 && float64(v.Entries) > part*float64(most) || most == 0 {
		return nil
	}
	return fmt.Errorf("list %s: the last version before this one, %s, has only %s, and the largest that is kept %s; if it is what you want, add --to %[2]s; else choose one of spamgate lists rollback %[1]s --list-versions",
		r.target.Name, v.ID, text.Count(v.Entries, "entry", "entries"), text.Number(most))
}

// rollbackResult is the output of rollback.
type rollbackResult struct {
	List    string         `json:"list"`
	Version string         `json:"version"`
	Time    time.Time      `json:"time"`
	Entries int            `json:"entries"`
	Files   []string       `json:"files"`              // that were changed
	Steps   []rollbackStep `json:"steps"`              // what was done with each of them
	Old     string         `json:"replaced,omitempty"` // the version that was there; "": none that is kept
	Again   string         `json:"again,omitempty"`    // the version that another rollback without --to puts back
	DryRun  bool           `json:"dry_run,omitempty"`
	URL     string         `json:"url,omitempty"`

	// Drops are the edits since that version was live, the newest first, which are taken back.
	Drops []managed.Change `json:"drops,omitempty"`

	Gate *local.Answer `json:"gate,omitempty"`
}

func (r *rollbackResult) print(w io.Writer) {
	done, replaced := "put back", "replaced"
	if r.DryRun {
		done, replaced = "would put back", "would replace"
	}
	fmt.Fprintf(w, "list %s: %s version %s\n", r.List, done, r.Version)
	fmt.Fprintf(w, "  with %s, live since %s\n", text.Count(r.Entries, "entry", "entries"), session.Clock(r.Time))
	if r.Old != "" {
		fmt.Fprintf(w, "  %s version %s\n", replaced, r.Old)
	} else {
		fmt.Fprintf(w, "  %s what is in no version that is kept\n", replaced)
	}
	for _, s := range r.Steps {
		fmt.Fprintf(w, "  %s\n", s)
	}
	r.printDrops(w)
	if r.URL != "" {
		fmt.Fprintf(w, "  the next version that %s has replaces it\n", r.URL)
	}
	if r.Again != "" && !r.DryRun {
		fmt.Fprintf(w, "  to go further back: --to VERSION, as --list-versions shows them; another\n  rollback without it puts back %s\n", r.Again)
	}
	session.PrintOutcome(w, r.DryRun, true, r.Gate)
}

// mostDrops is how many edits are printed that go.
const mostDrops = 20

// printDrops names the edits that go.
func (r *rollbackResult) printDrops(w io.Writer) {
	if len(r.Drops) == 0 {
		return
	}
	gone := "these edits are"
	if r.DryRun {
		gone = "these edits would be"
	}
	fmt.Fprintf(w, "  %s taken back, too:\n", gone)
	for _, c := range r.Drops[:min(mostDrops, len(r.Drops))] {
		term.PrintWrapped(w, "    ", fmt.Sprintf("%s %s: %s", session.Clock(c.Time), c.By, c.What))
	}
	if more := len(r.Drops) - mostDrops; more > 0 {
		fmt.Fprintf(w, "    and %s; spamgate lists changes shows them\n", text.Count(more, "more", "more"))
	}
}

// drops returns the edits that going back to a version takes back. That they cannot be told is not
// a reason to refuse.
func (r *rollback) drops(v store.VersionInfo) []managed.Change {
	changes := func(ctx context.Context, q managed.ChangesQuery) (managed.ChangesPage, error) {
		return admin.Call(ctx, r.Editor(), admin.OpChanges, admin.ChangesRequest{ChangesQuery: q})
	}
	drops, err := managed.Drops(r, changes, r.target.Name, v.Time)
	if err != nil {
		fmt.Fprintf(r.Stderr, "spamgate: which edits it takes back is not known: %v\n", err)
	}
	return drops
}

// run restores a version.
func (r *rollback) run() (*rollbackResult, error) {
	v, err := r.choose()
	if err != nil {
		return nil, err
	}
	steps, err := r.plan(v)
	if err != nil {
		return nil, err
	}
	result := &rollbackResult{
		List: r.target.Name, Version: v.ID, Time: v.Time.UTC(), Entries: v.Entries, DryRun: r.DryRun, Steps: steps,
		Old:   r.newest(func(sum string) bool { return sum == r.current }),
		Again: r.newest(func(sum string) bool { return sum != v.Sum }),
		Drops: r.drops(v),
	}
	if r.target.URL != "" {
		result.URL = setup.FetchSource(r.target.List).ShownURL()
	}
	if err := r.putBack(v, steps); err != nil {
		return nil, err
	}
	for _, s := range steps {
		result.Files = append(result.Files, s.File)
	}
	result.Gate = r.Rescan(r.target.Name)
	return result, nil
}

// putBack makes the files of the list those of a version.
func (r *rollback) putBack(v store.VersionInfo, steps []rollbackStep) error {
	switch {
	case r.target.Managed:
		_, err := admin.Call(r, r.Editor(), admin.OpRollback, admin.RollbackRequest{Version: v.ID, Options: managed.Options{DryRun: r.DryRun, Why: r.Reason}}, r.target.Name)
		return err
	case r.target.URL != "" && !r.DryRun:
		return fetch.ReplaceCopy(setup.FetchSource(r.target.List), func() error { return r.write(v, steps) })
	}
	return r.write(v, steps)
}

// newest returns the ID of the newest stored version whose sum satisfies such, or "".
func (r *rollback) newest(such func(sum string) bool) string {
	for _, v := range r.versions {
		if such(v.Sum) {
			return v.ID
		}
	}
	return ""
}

// loadManaged finds the stored versions of a managed list.
func (r *rollback) loadManaged() error {
	versions, err := admin.Call(r, r.Editor(), admin.OpVersions, admin.None{}, r.target.Name)
	for _, v := range versions {
		r.versions = append(r.versions, store.VersionInfo{ID: v.ID, Time: v.Time, Entries: v.Entries, Sum: v.Sum, Files: []string{r.target.Copy}, Bytes: v.Bytes})
		if v.OnDisk {
			r.current = v.Sum
		}
	}
	r.target.Paths = []string{r.target.Copy}
	return err
}
