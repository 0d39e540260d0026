package versions

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/internal/admin"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/managed"
	"spamgate/internal/report"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

func newListsPinCommand() *cobra.Command {
	p := &pinRun{}
	cmd := newPinCommand(p, &cobra.Command{
		Use:   "pin LIST",
		Short: "Freeze a list at its live version",
		Long: `Freeze a list at its live version, or at the version of --to. The gate still
reads changes of the list's files or URL, and holds them until "spamgate lists
unpin". Restarts, reloads and other settings of the list do not end a pin. The
history keeps the pinned version.

Commands such as add still write the files, and say that this is not live.
"spamgate lists status" shows what is pinned, since when, by whom and why.

Exit codes: 0 pinned; 2 the list has no such version, or an error.`,
		Example: `  spamgate lists pin blocked --reason "the publisher is being attacked"
  spamgate lists pin blocked --to 20261121T220000Z-0123456789ab`,
	})
	cmd.Flags().StringVar(&p.to, "to", "", "the `VERSION` of \"lists rollback --list-versions\"; its\nbeginning is enough (default: the live one)")
	return cmd
}

func newListsUnpinCommand() *cobra.Command {
	return newPinCommand(&pinRun{unpin: true}, &cobra.Command{
		Use:   "unpin LIST",
		Short: "Let the changes of a pinned list go live again",
		Long: `End the pin of a list: what its files hold goes live, unless it looks wrong (see
"spamgate lists accept --help").

Exit codes: 0 unpinned; 2 the list is not pinned, or an error.`,
		Example: `  spamgate lists diff blocked
  spamgate lists unpin blocked --reason "the publisher has repaired it"`,
	})
}

// newPinCommand adds to a command what pin and unpin share.
func newPinCommand(p *pinRun, cmd *cobra.Command) *cobra.Command {
	var f session.Flags
	cmd.Args = session.OneList
	f.AddChange(cmd, session.ForAudit)
	f.Runs(cmd, func(s *session.Session, args []string) error {
		l, err := listfiles.Find(s.Config, args[0])
		if err != nil {
			return err
		}
		p.Session, p.list = s, l
		result, err := p.run()
		if err != nil {
			return listfiles.WithAuthority(err, listfiles.WhoServes)
		}
		return s.PrintChange(result, result.print)
	})
	return cmd
}

// pinRun is one run of pin or unpin.
type pinRun struct {
	*session.Session
	list  config.List
	unpin bool
	to    string
}

// pinReport is the output of pin and unpin.
type pinReport struct {
	List    string        `json:"list"`
	Pinned  *admin.Pinned `json:"pinned"`  // nil: it is not pinned any more
	Entries int           `json:"entries"` // of the live version
	Before  int           `json:"before"`  // of the one before
	DryRun  bool          `json:"dry_run,omitempty"`
	Gate    *local.Answer `json:"gate,omitempty"`
}

func (r *pinReport) print(w io.Writer) {
	name := term.ShellWord(r.List)
	phrase := session.Would(r.DryRun)
	switch {
	case r.Pinned != nil:
		fmt.Fprintf(w, "list %s: %spinned at a version with %s\n", r.List, phrase, text.Count(r.Pinned.Entries, "entry", "entries"))
		fmt.Fprintf(w, "  changes are held until: spamgate lists unpin %s\n", name)
	default:
		fmt.Fprintf(w, "list %s: %sunpinned\n", r.List, phrase)
		if r.DryRun {
			fmt.Fprintf(w, "  what would change: spamgate lists diff %s\n", name)
		}
	}
	switch {
	case r.DryRun, r.Gate.Error != "":
		session.PrintOutcome(w, r.DryRun, true, r.Gate)
	case r.Gate.Running:
		fmt.Fprintf(w, "live in the running gate, generation %d: %s; %s before\n", r.Gate.Generation,
			text.Count(r.Entries, "entry", "entries"), text.Number(r.Before))
	default:
		fmt.Fprintln(w, "no gate is running: this holds from the next start on")
	}
}

func (p *pinRun) run() (*pinReport, error) {
	pin, live, err := p.find()
	if err != nil {
		return nil, err
	}
	result := &pinReport{List: p.list.Name, Entries: live.Entries, Before: live.Entries, DryRun: p.DryRun}
	if !p.unpin {
		result.Pinned = report.Pinned(&pin)
	}
	switch {
	case p.DryRun:
		return result, nil
	case p.Gate().Client != nil:
		return p.throughGate(p.Gate().Client, pin, result)
	}
	return p.byHand(pin, result)
}

// find returns the pin that is to be, and the state of the list.
func (p *pinRun) find() (pin blocklist.Pin, live admin.List, err error) {
	status, stats, err := p.Status(p.list)
	if err != nil {
		return pin, live, err
	}
	lists, err := session.OnlyList(status, p.list.Name)
	if err != nil {
		return pin, live, err
	}
	live = lists[0]
	record := listedit.NewRecord(p.Cmd.Name(), p.list.Name, "")
	pin = blocklist.Pin{Since: record.Time.Truncate(time.Second), Who: record.Person(), Why: p.Reason, Entries: live.Entries}
	if len(stats) > 0 {
		pin.Sum = stats[0].Sum
	}
	switch {
	case p.unpin && live.Pinned == nil:
		err = fmt.Errorf("list %s: %w", p.list.Name, admin.ErrNotPinned)
		if p.Gate().Client == nil {
			if _, unread := store.ReadPin(p.Config.State.Dir, p.list.Name); unread != nil {
				err = unread
			}
		}
	case p.unpin:
	case p.to != "":
		versions, errKept := session.KeptVersions(p.Config, p.list.Name)
		if errKept != nil {
			return pin, live, errKept
		}
		var v store.VersionInfo
		v, err = session.FindVersion(p.list.Name, versions, p.to)
		pin.Sum, pin.Entries = v.Sum, v.Entries
	case live.Loaded == nil:
		err = fmt.Errorf("list %s: %w: %s", p.list.Name, store.ErrNothing, live.Error)
	}
	return pin, live, err
}

func (p *pinRun) throughGate(client *admin.Client, pin blocklist.Pin, result *pinReport) (*pinReport, error) {
	var done admin.PinResult
	var err error
	if p.unpin {
		done, err = admin.Call(p, client, admin.OpUnpin, admin.UnpinRequest{Why: p.Reason}, p.list.Name)
	} else {
		if p.to == "" {
			pin.Sum = "" // what is live when the gate gets to it
		}
		done, err = admin.Call(p, client, admin.OpPin, admin.PinRequest{SHA256: pin.Sum, Entries: pin.Entries, Why: p.Reason}, p.list.Name)
	}
	if err != nil {
		return nil, err
	}
	result.Pinned, result.Entries, result.Before = done.Pinned, done.Entries, done.Before
	result.Gate = &local.Answer{Running: true, Generation: done.Generation, Error: done.Error, Refused: done.Error != ""}
	return result, nil
}

// byHand pins or unpins the list for the next start.
func (p *pinRun) byHand(pin blocklist.Pin, result *pinReport) (*pinReport, error) {
	if p.list.Fleet {
		return nil, fmt.Errorf("list %s: %w", p.list.Name, managed.ErrNoFleet)
	}
	lists, err := setup.BlocklistConfig(p.Config, nil)
	if err != nil {
		return nil, err
	}
	err = p.Recorded(p.list.Name, "", func() (string, error) {
		if p.unpin {
			return result.Pinned.What(), store.UnpinList(lists, p.list.Name)
		}
		return result.Pinned.What(), store.PinList(p, lists, p.list.Name, pin)
	})
	if err != nil {
		return nil, err
	}
	result.Gate = p.Gate().Rescan(p, "")
	return result, nil
}
