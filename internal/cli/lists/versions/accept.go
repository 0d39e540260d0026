package versions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/store"
	"spamgate/internal/admin"
	"spamgate/internal/atomicfile"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/recipients"
	"spamgate/internal/report"
	"spamgate/internal/setup"
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
		Args: session.OneList,
	}
	var f session.Flags
	f.AddChange(cmd, "why it is right, as `TEXT`, for the audit log")
	f.Runs(cmd, func(s *session.Session, args []string) (err error) {
		a := &acceptance{Session: s, name: args[0], recipients: session.IsRecipientFile(s.Config, args[0])}
		if !a.recipients {
			if a.list, err = listfiles.Find(s.Config, a.name); err != nil {
				return err
			}
		}
		a.result.List, a.result.DryRun = a.name, s.DryRun
		if s.Gate().Client != nil {
			err = a.byGate()
		} else {
			err = a.byHand()
		}
		if err != nil {
			return err
		}
		return s.PrintChange(a.result, a.result.print)
	})
	return cmd
}

// acceptance is one run of accept.
type acceptance struct {
	*session.Session
	name       string
	recipients bool        // it is a file with recipients
	path       string      // of that
	list       config.List // or else this list
	result     acceptResult
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
	fmt.Fprintf(w, "%s: %saccepted, %s; %s before\n", r.List, session.Would(r.DryRun), text.Count(r.Entries, "entry", "entries"), text.Number(r.Before))
	if r.DryRun {
		fmt.Fprintf(w, "  it is held: %s\n", r.Held)
	}
	session.PrintOutcome(w, r.DryRun, true, r.Gate)
}

// byGate has the running gate accept what it holds.
func (a *acceptance) byGate() error {
	s, err := admin.Call(a, a.Gate().Client, admin.OpStatus, admin.None{})
	if err == nil {
		err = session.Only(&s, a.Config, a.name)
	}
	switch {
	case err != nil:
		return err
	case a.recipients && a.DryRun:
		_, err = a.heldRecipients()
		return err
	case a.recipients:
		a.result.Held, a.result.Before = s.Recipients[0].Error, s.Recipients[0].Entries
	default:
		a.result.Held, a.result.Before = withoutAdvice(s.Lists[0].Error), s.Lists[0].Entries
		if a.DryRun {
			return a.checkHeld(s.Lists[0])
		}
	}
	done, err := admin.Call(a, a.Gate().Client, admin.OpAccept, admin.AcceptRequest{Why: a.Reason}, a.name)
	if err != nil {
		return err
	}
	a.result.Accepted, a.result.Entries, a.result.Before = true, done.Entries, done.Before
	a.result.Gate = &local.Answer{Running: true, Generation: done.Generation}
	return nil
}

// checkHeld returns the error that a gate would give if nothing can be accepted, and else counts what
// would be.
func (a *acceptance) checkHeld(l admin.List) (err error) {
	switch {
	case l.Acceptable:
		a.result.Entries, err = a.count()
		return err
	case l.Error == "":
		return fmt.Errorf("list %s: %w: what is on disk serves, with %s", a.name, admin.ErrNothingHeld, text.Count(l.Entries, "entry", "entries"))
	default:
		return fmt.Errorf("list %s cannot be accepted as it is: %s", a.name, l.Error)
	}
}

// byHand records, for the next start, that the content on disk is accepted.
func (a *acceptance) byHand() error {
	if unasked := a.Gate().Err; unasked != nil {
		if _, err := atomicfile.In(a.Config.State.Dir).ReadDir("."); errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("what is held cannot be found out: %w", unasked)
		}
	}
	held := a.heldList
	if a.recipients {
		held = a.heldRecipients
	}
	accept, err := held()
	if err != nil || a.DryRun {
		return err
	}
	err = a.Recorded(a.name, a.path, func() (string, error) {
		what, err := accept()
		return fmt.Sprintf("%s%d entries; %d before: %s", what, a.result.Entries, a.result.Before, a.result.Held), err
	})
	if err == nil {
		a.result.Accepted, a.result.Gate = true, a.Gate().Rescan(a, a.name)
	}
	return err
}

// heldList reads the list, and returns the function that accepts what is held of it.
func (a *acceptance) heldList() (accept func() (what string, err error), err error) {
	_, stats, err := a.Read(a.list)
	if a.Err() != nil {
		return nil, context.Cause(a)
	}
	if len(stats) == 0 {
		return nil, err
	}
	l := stats[0]
	sum, err := report.HeldSum(l)
	if err != nil {
		return nil, err
	}
	a.result.Held, a.result.Before = withoutAdvice(l.Err.Error()), l.Entries
	if a.result.Entries, err = a.count(); err != nil {
		return nil, err
	}
	lists, err := setup.BlocklistConfig(a.Config, nil)
	return func() (string, error) {
		if l.Retry {
			return "tried once more, ", store.RetryBuild(lists, a.name)
		}
		return "accepted content " + sum[:12] + ", ", store.AcceptContent(lists, a.name, sum)
	}, err
}

// heldRecipients reads the file with recipients, and returns the function that accepts what is held
// of it.
func (a *acceptance) heldRecipients() (accept func() (what string, err error), err error) {
	i := slices.IndexFunc(setup.RecipientFiles(a.Config), func(s recipients.Spec) bool { return s.Name() == a.name })
	spec := setup.RecipientFiles(a.Config)[i]
	f, err := recipients.Read(spec, a.Config.State.Dir)
	if err != nil {
		return nil, setup.RecipientFault(a.Config, spec, err)
	}
	s := f.Status()
	switch {
	case s.Err == nil:
		return nil, fmt.Errorf("%s: %w: what is on disk serves, with %s", a.name, admin.ErrNothingHeld, text.Count(s.Entries, "entry", "entries"))
	case !s.Acceptable:
		return nil, fmt.Errorf("%s cannot be accepted as it is: %w", a.name, s.Err)
	}
	a.path = s.Path
	a.result.Held, a.result.Before, a.result.Entries = s.Err.Error(), s.Entries, s.OnDisk
	return func() (string, error) {
		err := f.Accept()
		a.result.Entries = f.Status().Entries
		return "", err
	}, nil
}

// count returns the number of entries on disk, counted as a gate does.
func (a *acceptance) count() (n int, err error) {
	list, err := listfiles.New(a.list)
	if err != nil {
		return 0, err
	}
	list.Options.Now = 0 // entries whose time is over do not count
	guarded := listfiles.NewProtection(a.Config)
	s := listfiles.NewScan(a, []*listfiles.List{list}, a.Stderr)
	err = s.Lists([]*listfiles.List{list}, func(f listfiles.Located) error {
		if !guarded.LeftOut(list, f.Entry).Omitted() {
			n++
		}
		return nil
	})
	if err == nil && s.Failed {
		err = fmt.Errorf("list %s: %w", a.name, errUncounted)
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
