package lists

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/internal/admin"
	"spamgate/internal/atomicfile"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/report"
	"spamgate/internal/text"
)

func newListsAcceptCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "accept LIST",
		Short: "Accept an update that is held because it looks wrong",
		Long: `Accept an update of a list that is held because it looks wrong: it has far fewer
or far more entries than before, or too few, or many new exceptions or entries
that expire. Only the present content on disk is accepted: if the list changes
again, it is checked again. An update during which the gate was killed twice is
tried once more: add memory first. A file with recipients has the name of its
key, recipient_domains or valid_recipients, or of its recipient policy.

"spamgate lists status LIST" shows why an update is held, and "spamgate lists
diff LIST" which entries it would add and remove.

Exit codes: 0 accepted; 2 nothing is held, or an error.`,
		Example: `  spamgate lists diff blocked
  spamgate lists accept blocked --reason "the list was cleaned up"`,
		Args: oneList,
	}
	var f listsFlags
	f.addJSON(cmd)
	f.addDryRun(cmd)
	why := cmd.Flags().StringP("reason", "r", "", "`TEXT` for the audit log: why it is right")
	f.runs(cmd, func(s *session, args []string) error {
		a := &acceptance{config: s.config, list: args[0], why: *why, dryRun: f.dryRun, stderr: s.stderr}
		accept := a.recipients
		if !isRecipientFile(s.config, args[0]) {
			if _, err := listfiles.Find(s.config, args[0]); err != nil {
				return err
			}
			accept = a.run
		}
		result, err := accept(s)
		if err != nil {
			return err
		}
		return s.printChange(result, result.print)
	})
	return cmd
}

// oneList accepts exactly one argument, a list.
func oneList(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("name one list; spamgate lists status shows them")
	}
	return nil
}

// acceptance is one run of accept.
type acceptance struct {
	config *config.Config
	list   string
	why    string
	dryRun bool
	stderr io.Writer
}

// acceptResult is the output of accept.
type acceptResult struct {
	List     string        `json:"list"`
	Held     string        `json:"held"` // why it was held
	DryRun   bool          `json:"dry_run,omitempty"`
	Accepted bool          `json:"accepted"`
	Entries  int           `json:"entries"` // with what is accepted
	Before   int           `json:"before"`  // that served until then
	Gate     *local.Answer `json:"gate,omitempty"`
}

func (r acceptResult) print(w io.Writer) {
	would := ""
	if r.DryRun {
		would = "would be "
	}
	fmt.Fprintf(w, "%s: %saccepted, %s; %s before\n", r.List, would, text.Count(r.Entries, "entry", "entries"), text.Number(r.Before))
	if r.DryRun {
		fmt.Fprintf(w, "  it is held: %s\n", r.Held)
		fmt.Fprintln(w, "dry run: nothing has changed")
		return
	}
	r.Gate.Print(w)
}

func (a *acceptance) run(ctx context.Context) (acceptResult, error) {
	gate := local.DialGate(a.config)
	defer gate.Close()
	if gate.Client != nil {
		return a.byGate(ctx, gate.Client)
	}
	if gate.Err != nil {
		if _, err := atomicfile.In(a.config.State.Dir).ReadDir("."); errors.Is(err, fs.ErrPermission) {
			return acceptResult{}, fmt.Errorf("what is held cannot be found out: %w", gate.Err)
		}
	}
	return a.byHand(ctx, gate)
}

// byGate has the running gate accept what it holds.
func (a *acceptance) byGate(ctx context.Context, client *admin.Client) (acceptResult, error) {
	result := acceptResult{List: a.list, DryRun: a.dryRun}
	s, err := client.Status(ctx)
	if err != nil {
		return result, err
	}
	lists, err := onlyList(s, a.list)
	if err != nil {
		return result, err
	}
	result.Held, result.Before = withoutAdvice(lists[0].Error), lists[0].Entries
	if a.dryRun {
		if err := a.checkHeld(lists[0]); err != nil {
			return result, err
		}
		result.Entries, err = a.count(ctx)
		return result, err
	}
	done, err := client.Accept(ctx, a.list, "", a.why)
	if err != nil {
		return result, err
	}
	result.Accepted, result.Entries, result.Before = true, done.Entries, done.Before
	result.Gate = &local.Answer{Running: true, Generation: done.Generation}
	return result, nil
}

// checkHeld returns the error that a gate would give if nothing can be accepted.
func (a *acceptance) checkHeld(l admin.List) error {
	switch {
	case l.Acceptable:
		return nil
	case l.Error == "":
		return fmt.Errorf("list %s: %w: what is on disk serves, with %s", a.list, admin.ErrNothingHeld, text.Count(l.Entries, "entry", "entries"))
	default:
		return fmt.Errorf("list %s cannot be accepted as it is: %s", a.list, l.Error)
	}
}

// byHand records, for the next start, that the content on disk is accepted.
func (a *acceptance) byHand(ctx context.Context, gate local.RunningGate) (acceptResult, error) {
	result := acceptResult{List: a.list, DryRun: a.dryRun}
	_, stats, err := buildReadOnly(ctx, a.config, a.stderr)
	if ctx.Err() != nil {
		return result, context.Cause(ctx)
	}
	l, ok := statsOf(stats, a.list)
	if !ok {
		return result, err
	}
	sum, err := report.HeldSum(l)
	if err != nil {
		return result, err
	}
	result.Held, result.Before = withoutAdvice(l.Err.Error()), l.Entries
	if result.Entries, err = a.count(ctx); err != nil || a.dryRun {
		return result, err
	}
	dir := a.config.State.Dir
	log := &listedit.Log{Dir: dir}
	if err := log.Check(); err != nil {
		return result, fmt.Errorf("nothing is accepted: %w", err)
	}
	what := "tried once more"
	if l.Retry {
		err = retryBuild(a.config, a.list)
	} else {
		what = "accepted content " + sum[:12]
		err = acceptContent(a.config, a.list, sum)
	}
	if err != nil {
		return result, err
	}
	record := listedit.NewRecord("accept", a.list, "")
	record.What, record.Why = fmt.Sprintf("%s, %d entries; %d before: %s", what, result.Entries, result.Before, result.Held), a.why
	if err := log.Append(record); err != nil {
		return result, errors.Join(errors.New("it is accepted, but that is not recorded"), err)
	}
	result.Accepted, result.Gate = true, gate.Rescan(ctx, a.list)
	return result, nil
}

// count returns the number of entries on disk, counted as a gate does.
func (a *acceptance) count(ctx context.Context) (n int, err error) {
	l, err := listfiles.Find(a.config, a.list)
	if err != nil {
		return 0, err
	}
	at, err := listfiles.New(l)
	if err != nil {
		return 0, err
	}
	at.Options.Now = 0 // entries whose time is over do not count
	guarded := listfiles.NewProtection(a.config)
	s := listfiles.NewScan(ctx, []*listfiles.List{at}, a.stderr)
	err = s.Lists([]*listfiles.List{at}, func(f listfiles.Located) error {
		if !guarded.LeftOut(at, f.Entry).Omitted() {
			n++
		}
		return nil
	})
	if err == nil && s.Failed {
		err = fmt.Errorf("list %s: %w", a.list, errUncounted)
	}
	return n, err
}

// errUncounted reports that the content to be accepted cannot be read.
var errUncounted = errors.New("nothing is accepted, since what is on disk cannot be read")

// withoutAdvice cuts the advice off the reason why an update is held.
func withoutAdvice(why string) string {
	why, _, _ = strings.Cut(why, "; if that is right, ")
	why, _, _ = strings.Cut(why, "; if there is more memory ")
	return why
}

func statsOf(lists []blocklist.ListStats, name string) (blocklist.ListStats, bool) {
	for _, l := range lists {
		if l.Name == name {
			return l, true
		}
	}
	return blocklist.ListStats{}, false
}
