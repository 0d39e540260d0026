package look

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
	"spamgate/internal/cli"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

type listsTestOptions struct {
	session.Flags
	session.FormatFlags
	against string
	top     int
}

func newListsTestCommand() *cobra.Command {
	var o listsTestOptions
	cmd := &cobra.Command{
		Use:   "test FILE|LIST --against LOG",
		Short: "Show what a list would have blocked",
		Long: `Show which senders a list file would have blocked, before you use it, or a
configured block list as it is on disk. A file takes precedence over a list of
the same name. LOG is a log of Postfix, Exim, OpenSMTPD or spamgate (text or
JSON), or a file of addresses, one per line; it may be compressed with gzip, and
"-" is standard input.

Each message counts once, by its envelope sender. Only this list is asked: other
lists, such as allow lists, do not count.

Exit codes: 0 no message would have been blocked; 1 some would; 2 an error.`,
		Example: `  spamgate lists test new.txt --against /var/log/mail.log
  spamgate lists test hosts.txt --format hosts --against senders.txt --json
  journalctl -u postfix --since -7d | spamgate lists test new.txt --against -`,
		Args: session.OneArgument("list file, or one list of the configuration"),
	}
	cmd.Flags().StringVarP(&o.against, "against", "a", "", "the `LOG`, or addresses (required)")
	cmd.Flags().IntVar(&o.top, "top", 10, "show the first `N` entries and senders")
	o.FormatFlags.Add(cmd)
	o.AddMatching(cmd)
	o.AddJSON(cmd)
	o.RunsIf(cmd, func([]string) bool { return false }, func(s *session.Session, args []string) error { return listsTest(s, o, args[0]) })
	return cmd
}

// testReport is the output of test.
type testReport struct {
	List     string     `json:"list"`
	Against  string     `json:"against"`
	Messages int        `json:"messages"`
	Blocked  int        `json:"blocked"`
	Senders  int        `json:"blocked_senders"`
	Hidden   int        `json:"hidden"` // messages whose sender the log does not show
	Entries  []topEntry `json:"entries"`
	Top      []topOne   `json:"top_senders"`
}

// topEntry is an entry with the number of messages it would have blocked.
type topEntry struct {
	listfiles.EntryInfo
	Messages int `json:"messages"`
}

// topOne is a sender with the number of messages that would have been blocked.
type topOne struct {
	Sender   string `json:"sender"`
	Messages int    `json:"messages"`
	listfiles.EntryInfo
}

// maxTestSenders bounds the distinct senders that are counted one by one. Messages of further
// senders count in the totals only.
const maxTestSenders = 1_000_000

// listTest is one run of test.
type listTest struct {
	set     *blocklist.Set
	report  testReport
	senders map[string]*topOne
	entries map[string]*topEntry
	failed  error
}

func listsTest(s *session.Session, o listsTestOptions, path string) error {
	if o.against == "" {
		return errors.New("nothing to test against: give a log or addresses with --against, as in --against /var/log/mail.log")
	}
	if path == "-" {
		return errors.New("standard input can only be what --against names: give the list as a file")
	}
	if o.top < 0 {
		return fmt.Errorf("--top %d: want 0 or more", o.top)
	}
	tested, protect, err := listToTest(s.Cmd, path, o)
	if err != nil {
		return err
	}
	set, err := setOf(s, path, tested, protect)
	if err != nil {
		return err
	}
	bar := term.NewFileProgress(s.Stderr, o.against)
	defer bar.Finish()
	in, err := listfiles.OpenInput(s, s.Cmd.InOrStdin(), o.against, bar)
	if err != nil {
		return fmt.Errorf("--against: %w", err)
	}
	defer in.Close()
	t := &listTest{set: set, senders: map[string]*topOne{}, entries: map[string]*topEntry{}, report: testReport{List: path, Against: in.Path}}
	var senders senderReader
	if err := errors.Join(senders.read(in, t.message), t.failed); err != nil {
		return fmt.Errorf("%s: %w", in.Path, err)
	}
	bar.Finish()
	t.report.Messages, t.report.Hidden = senders.Senders, senders.Hidden
	if senders.Senders == 0 {
		return fmt.Errorf("%s: no sender in %s: want lines with from=<user@example.com>, as Postfix, OpenSMTPD and spamgate log them, Exim's lines with <=, or addresses, one a line%s",
			in.Path, text.Count(senders.Lines, "line", "lines"), hiddenHint(senders.Hidden))
	}
	return t.finish(s, o.top)
}

func hiddenHint(hidden int) string {
	if hidden == 0 {
		return ""
	}
	return fmt.Sprintf(`; %s hidden, as with [log] addresses = "hash"`, text.Count(hidden, "sender is", "senders are"))
}

// listGlobEscaper escapes the glob characters in a file's name.
var listGlobEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// listToTest returns the list that a name stands for: a file, or else a configured list, with
// the names that are protected from it.
func listToTest(cmd *cobra.Command, name string, f listsTestOptions) (tested store.List, protect []string, err error) {
	tested = store.List{Name: name, Type: blocklist.Block, Action: verdict.Reject}
	o, err := f.FormatFlags.Options()
	if err != nil {
		return tested, nil, err
	}
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		c, failed := config.Load(cmd.Flag("config").Value.String())
		switch {
		case errors.Is(failed, fs.ErrNotExist):
			return tested, nil, fmt.Errorf("%w; give a list file, or the name of a list with its configuration in --config", err)
		case failed != nil:
			return tested, nil, fmt.Errorf("there is no file %s, and whether there is a list of that name is not known: %w", name, failed)
		}
		l, failed := listfiles.Find(c, name)
		switch {
		case failed != nil:
			return tested, nil, fmt.Errorf("there is no file %s, and %w", name, failed)
		case l.Type != "block":
			return tested, nil, fmt.Errorf("list %s blocks nobody: its type is %q", name, l.Type)
		case l.PerRecipient:
			return tested, nil, fmt.Errorf("each entry of list %s counts for some recipients: senders alone do not say for whom it would block; spamgate check --rcpt asks about one recipient", name)
		case f.FormatChanged(cmd) != "":
			return tested, nil, fmt.Errorf("--%s goes with a file: a list is read as the configuration says", f.FormatChanged(cmd))
		}
		if l.URL != "" {
			if _, err := setup.Opener(l).Stat(l.Copy); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return tested, nil, err
			}
		}
		tested.URL, tested.AllowNullSender, tested.AllowLocalParts = setup.FetchSource(l).ShownURL(), l.AllowNullSender, l.AllowLocalParts
		if l.OnProtected != store.AcceptProtected {
			protect = setup.Protected(c.Guard)
		}
		if a := verdict.ActionOf(l.Action); a.Drops() {
			tested.Action = a // DISCARD is an entry there
		}
		tested.Paths = []string{l.Files()}
		o = listfile.Options{Format: l.Format, Column: l.Column, Exact: l.Match == "exact", AllowPublicSuffix: l.AllowPublicSuffix}
	} else {
		full, err := filepath.Abs(name)
		if err != nil {
			return tested, nil, err
		}
		tested.Paths = []string{listGlobEscaper.Replace(full)}
	}
	tested.Format, tested.Column, tested.Exact, tested.AllowPublicSuffix = o.Format, o.Column, o.Exact, o.AllowPublicSuffix
	return tested, protect, nil
}

// setOf builds a Set of one list.
func setOf(s *session.Session, path string, tested store.List, protect []string) (*blocklist.Set, error) {
	set, stats, err := local.BuildSet(s, store.Config{
		Lists:   []store.List{tested},
		Protect: protect,
		Filter:  blocklist.Filter{Kind: "sized", Family: "double"},
	}, s.Stderr)
	if err != nil {
		if len(stats) == 1 && stats[0].Err != nil {
			err = stats[0].Err
		}
		return nil, fmt.Errorf("%w; spamgate lists lint says more", err)
	}
	for _, l := range stats {
		if l.Invalid > 0 {
			fmt.Fprintf(s.Stderr, "spamgate: %s: %s skipped; see spamgate lists lint\n", path, text.Count(l.Invalid, "invalid line", "invalid lines"))
		}
	}
	return set, nil
}

// message looks up the sender of one message.
func (t *listTest) message(a sender.Address) {
	d, err := t.set.Lookup(verdict.Envelope, a)
	if err != nil {
		t.failed = err
		return
	}
	if d.Action == verdict.Accept {
		return
	}
	t.report.Blocked++
	m := d.Match
	entryInfo := listfiles.EntryInfo{File: m.File, Line: m.Line, Entry: m.Entry, Kind: listfile.KindOf(m.Entry).String(), Reason: m.Reason, Note: m.Note}
	if t.entries[m.Entry] == nil {
		t.entries[m.Entry] = &topEntry{EntryInfo: entryInfo}
	}
	t.entries[m.Entry].Messages++
	text := a.String()
	if t.senders[text] == nil {
		if len(t.senders) == maxTestSenders {
			return
		}
		t.senders[text] = &topOne{Sender: text, EntryInfo: entryInfo}
	}
	t.senders[text].Messages++
}

func (t *listTest) finish(s *session.Session, top int) error {
	r := &t.report
	r.Senders = len(t.senders)
	r.Entries, r.Top = []topEntry{}, []topOne{}
	for _, e := range t.entries {
		r.Entries = append(r.Entries, *e)
	}
	for _, count := range t.senders {
		r.Top = append(r.Top, *count)
	}
	slices.SortFunc(r.Entries, func(a, b topEntry) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Line, b.Line))
	})
	slices.SortFunc(r.Top, func(a, b topOne) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.Sender, b.Sender))
	})
	r.Entries, r.Top = r.Entries[:min(len(r.Entries), top)], r.Top[:min(len(r.Top), top)]
	err := s.Print(r, func(w io.Writer) { r.print(w, len(t.entries)) })
	if err == nil && r.Blocked > 0 {
		err = cli.ErrNo
	}
	return err
}

func (r *testReport) print(w io.Writer, entries int) {
	fmt.Fprintf(w, "%s would have blocked %d of %s", term.ShortPath(r.List), r.Blocked, text.Count(r.Messages, "message", "messages"))
	if r.Blocked > 0 {
		fmt.Fprintf(w, " (%.1f%%), from %s, by %s", 100*float64(r.Blocked)/float64(r.Messages),
			text.Count(r.Senders, "sender", "senders"), text.Count(entries, "entry", "entries"))
	}
	fmt.Fprintln(w)
	if r.Hidden > 0 {
		fmt.Fprintf(w, "%s not counted%s\n", text.Count(r.Hidden, "message", "messages"), hiddenHint(r.Hidden))
	}
	if len(r.Entries) > 0 {
		fmt.Fprintln(w, "\nmessages  by entry")
		for _, e := range r.Entries {
			fmt.Fprintf(w, "%8d  %s, %s%s\n", e.Messages, e.Entry, e.Place(), term.InBrackets(e.Reason))
		}
	}
	if len(r.Top) > 0 {
		fmt.Fprintln(w, "\nmessages  from")
		for _, s := range r.Top {
			fmt.Fprintf(w, "%8d  %s, by %s\n", s.Messages, s.Sender, s.Entry)
		}
	}
}
