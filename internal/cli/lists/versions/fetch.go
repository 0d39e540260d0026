package versions

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/admin"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/fetch"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

func newListsFetchCommand() *cobra.Command {
	var o session.Flags
	cmd := &cobra.Command{
		Use:   "fetch [NAME...]",
		Short: "Fetch lists from their URLs now",
		Long: `Fetch lists from their URLs now: the named ones, or all that have a URL. A
running gate fetches them by itself, every hour unless the list has another
refresh.

The copies are in the state directory. If a fetch fails or its signature is
invalid, the previous copy stays.

--force takes what the server has now, even if its signature is older than that
of the copy, if it does not end in a newline as the copy does, or after a
rollback. It accepts nothing that is not signed by public_key for this list, and
is recorded in the audit log.

If a copy looks wrong, the gate holds it and uses the last good version of the
list. The command reports that each time, even if there is nothing new or the
server cannot be reached; see spamgate lists diff LIST and spamgate lists accept
LIST.

Exit codes: 0 all copies are up to date and in use; 2 an error, which names the
list, or a list is held.`,
		Example: `  spamgate lists fetch
  spamgate lists fetch disposable --json
  spamgate lists fetch disposable --force --reason "the new version was wrong"`,
	}
	o.AddChange(cmd, "why --force is right, as `TEXT`, for the audit log")
	force := cmd.Flags().Bool("force", false, "take an older version of the named lists, too")
	o.Runs(cmd, func(s *session.Session, names []string) error {
		switch {
		case *force && len(names) == 0:
			return errors.New("--force needs the names of lists: spamgate lists fetch NAME --force")
		case o.Reason != "" && !*force:
			return errors.New("--reason is for --force, which the audit log records")
		}
		return listsFetch(s, names, *force)
	})
	return cmd
}

// fetchReport is the output of fetch.
type fetchReport struct {
	DryRun bool          `json:"dry_run"`
	Lists  []fetchedList `json:"lists"`
	Gate   *local.Answer `json:"gate,omitempty"` // if there is something new
}

// fetchedList describes the fetch of one list.
type fetchedList struct {
	List     string     `json:"list"`
	URL      string     `json:"url"`
	File     string     `json:"file"`
	What     string     `json:"what"` // one of those below
	Bytes    int64      `json:"bytes"`
	LastGood *time.Time `json:"last_good,omitempty"` // when the server last confirmed the file
	Error    string     `json:"error,omitempty"`
	Held     bool       `json:"held,omitempty"`       // it looks wrong, as Why says
	Why      string     `json:"why,omitempty"`        // the copy does not serve
	Lacks    string     `json:"lacks_list,omitempty"` // what to do if the running gate has no such list yet
	err      error
}

// The values of fetchedList.What.
const (
	listFetched  = "fetched"
	listUpToDate = "up to date"
	listReplaced = "rolled back" // and the server has no other version yet
	listFailed   = "failed"
	listToFetch  = "to be fetched"
)

func listsFetch(s *session.Session, names []string, force bool) error {
	lists, err := listsToFetch(s.Config, names)
	if err != nil {
		return err
	}
	report := fetchReport{DryRun: s.DryRun, Lists: make([]fetchedList, len(lists))}
	for i, l := range lists {
		report.Lists[i] = fetchedList{List: l.Name, URL: setup.FetchSource(l).ShownURL(), File: l.Copy, What: listToFetch}
	}
	if s.DryRun {
		return s.Print(report, report.print)
	}
	sources, err := setup.FetchSources(lists)
	if err != nil {
		return err
	}
	log := &listedit.Log{Dir: s.Config.State.Dir}
	if force {
		if err := log.Check(); err != nil {
			return fmt.Errorf("nothing was fetched: %w", err)
		}
		for i := range sources {
			sources[i].Force = true
		}
	}
	report.run(s, lists, sources)
	var recorded error
	if force {
		recorded = report.record(log, s.Reason)
	}
	return errors.Join(s.Print(report, report.print), report.err(), recorded)
}

// record writes to the audit log which lists were fetched with --force.
func (r *fetchReport) record(log *listedit.Log, why string) error {
	var errs []error
	for _, l := range r.Lists {
		if l.What == listFetched {
			record := listedit.NewRecord("fetch", l.List, l.File)
			record.What, record.Why = "fetch with --force", why
			errs = append(errs, log.Append(record))
		}
	}
	return errors.Join(errs...)
}

// listsToFetch returns the named lists, or all lists that have a URL.
func listsToFetch(c *config.Config, names []string) ([]config.List, error) {
	var lists []config.List
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		l, err := listfiles.Find(c, name)
		if err != nil {
			return nil, err
		}
		if l.URL == "" {
			return nil, fmt.Errorf("list %s is read from %s, and comes from no url: there is nothing to fetch", name, term.ShortPath(l.Path))
		}
		lists = append(lists, l)
	}
	if len(names) > 0 {
		return lists, nil
	}
	for _, l := range c.Lists {
		if l.URL != "" {
			lists = append(lists, l)
		}
	}
	if len(lists) == 0 {
		return nil, fmt.Errorf(`%s has no list with a url: give one url = "https://HOST/FILE" in place of path`, c.File)
	}
	return lists, nil
}

// run fetches the lists, and has the running gate load what is new.
func (r *fetchReport) run(s *session.Session, lists []config.List, sources []fetch.Source) {
	changed := ""
	setup.FetchAll(s, sources, nil, s.Stderr, func(i int, status fetch.Status) {
		l := &r.Lists[i]
		l.Bytes = status.Bytes
		if !status.LastGood.IsZero() {
			l.LastGood = &status.LastGood
		}
		switch {
		case status.Err != nil:
			l.What, l.Error, l.err = listFailed, status.Err.Error(), status.Err
		case status.NotModified && status.Replaced:
			l.What = listReplaced
		case status.NotModified:
			l.What = listUpToDate
		default:
			l.What, changed = listFetched, l.List
		}
	})
	if s.Err() != nil {
		return
	}
	if changed != "" {
		r.Gate = s.Gate().Rescan(s, "")
	}
	r.judge(s, lists)
}

// judge finds the copies that are not in use: it asks the running gate, or else reads the
// lists as a start would.
func (r *fetchReport) judge(run *session.Session, lists []config.List) {
	status, _, err := run.Status(lists...)
	if err != nil && status.Lists == nil { // else it is about files with recipients
		return // rescan has said so, or nothing is new
	}
	for i := range r.Lists {
		l := &r.Lists[i]
		if status.From != admin.FromDisk && !local.HasList(status.Lists, l.List) {
			l.Lacks = local.NoListYet(l.List, status.PID)
		}
		for _, s := range status.Lists {
			if s.Name == l.List && s.Error != "" && (l.What != listFailed || s.Held) {
				l.Held, l.Why = s.Held, s.Error
			}
		}
	}
}

func (r *fetchReport) print(w io.Writer) {
	for _, l := range r.Lists {
		switch l.What {
		case listFailed: // err says it
		case listToFetch:
			fmt.Fprintf(w, "%s: would be fetched from %s to %s\n", l.List, l.URL, term.ShortPath(l.File))
		default:
			if l.Why == "" && l.What == listReplaced {
				fmt.Fprintf(w, "%s: rolled back: the copy stays until the server has another version\n", l.List)
			} else if l.Why == "" { // else err says it
				fmt.Fprintf(w, "%s: %s, %s\n", l.List, l.What, term.ByteSize(l.Bytes))
			}
		}
		if l.Lacks != "" {
			fmt.Fprintln(w, l.Lacks)
		}
	}
	serves := func(l fetchedList) bool { return l.What == listFetched && l.Why == "" && l.Lacks == "" }
	if r.Gate != nil && slices.ContainsFunc(r.Lists, serves) {
		r.Gate.Print(w)
	}
}

// err returns the errors of lists that failed, or whose copy is not in use.
func (r *fetchReport) err() error {
	var errs []error
	for _, l := range r.Lists {
		switch {
		case l.err != nil:
			errs = append(errs, l.err)
			if l.Held {
				errs = append(errs, fmt.Errorf("list %s: what came before is held: %s", l.List, l.Why))
			}
		case l.Held:
			errs = append(errs, fmt.Errorf("list %s: %s, but held: %s", l.List, l.What, l.Why))
		case l.Why != "":
			errs = append(errs, fmt.Errorf("list %s: %s, but it cannot be used: %s", l.List, l.What, l.Why))
		}
	}
	return errors.Join(errs...)
}
