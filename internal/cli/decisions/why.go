package decisions

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/sender"
	"spamgate/internal/check"
	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	history "spamgate/internal/decisions"
	"spamgate/internal/fleetsearch"
	"spamgate/internal/mailwhy"
	"spamgate/internal/term"
)

// NewWhy returns the command that says what happened to a message.
func NewWhy() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why ID|ADDRESS",
		Short: "Say what happened to a message, and what would happen now",
		Long: `Find a message in the history of decisions, by the id that a refusal has or by
the address of a sender or a recipient, and say in words what happened to it:
which list and which line decided, and what the lists on disk would do now, as
check says. The text of a whole refusal, in quotes, does as well as its id.

The answer says how far back the history reaches. Only the log has most ids of a
flood of equal refusals, and with [decisions] record = "refused" the accepted
messages of senders on no list. With [log] addresses = "hash" an address is
found by its hash. With "domain" the messages may be those of others at the
domain.

In a fleet it asks the histories of all gates for an address, and for an id that
this gate does not know. The answer says which gate had a message, and which
gates did not answer within 3 seconds.

Exit codes: 0 something was found; 1 nothing was; 2 an error, or nothing was
found and a gate of the fleet did not answer.`,
		Example: `  spamgate why 2ZFPDJSVUUAR
  spamgate why someone@example.org --since 7d
  spamgate why 2ZFPDJSVUUAR --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one message by the id of a refusal, or one address; quote what has spaces")
			}
			return nil
		},
	}
	var since string
	var most int
	var here, json bool
	cmd.Flags().StringVar(&since, "since", "", "only since `TIME`: 7d, 12h, a day or a time")
	cmd.Flags().IntVar(&most, "last", 20, "show only the `N` newest messages")
	cmd.Flags().BoolVar(&here, "here", false, "ask this gate only, not the whole fleet")
	cmd.Flags().BoolVar(&json, "json", false, "print a JSON object")
	runs(cmd, func(s *session, args []string) error {
		if err := checkMost("last", most, maxMessages); err != nil {
			return err
		}
		a := &answer{session: s, asked: strings.TrimSpace(args[0]), most: most}
		if err := a.parse(since); err != nil {
			return err
		}
		if err := a.search(here); err != nil {
			return err
		}
		a.askNow()
		out := term.Escape(cmd.OutOrStdout())
		if json {
			if err := cli.PrintJSON(out, a.forPrograms()); err != nil {
				return err
			}
		} else {
			a.print(out)
		}
		if len(a.messages) == 0 && !a.page.Whole() {
			return cli.ErrReported
		}
		return nothing(len(a.messages) > 0)
	})
	return cmd
}

// Bounds of an answer.
const (
	maxMessages      = 1000
	maxDecisions     = 100 // about one message
	maxCompleted     = 100 // messages of which all decisions are fetched
	maxNow           = 10  // senders of whom it says what would happen now
	maxNowRecipients = 20  // recipients for whom it says so
)

// answer is what the command says.
type answer struct {
	*session
	asked string
	most  int
	query history.Query

	page     fleetsearch.Page // which gates have answered, and how far back they reach
	messages []*message       // the newest first
	more     bool             // there are older ones

	presents []present
	notNow   string // why it is not known what would happen now
}

// message is a message, with the decisions about it, the oldest first.
type message struct {
	id, gate  string
	decisions []history.Decision
	more      bool
}

// present is what would happen now to a sender.
type present struct {
	Listener string `json:"listener,omitempty"`
	Result   any    `json:"result,omitempty"` // as check --json prints it
	Error    string `json:"error,omitempty"`

	address, text string // as check prints it
}

// parse makes the query of what was asked.
func (a *answer) parse(since string) (err error) {
	if a.query.Since, err = a.parseSince(since); err != nil {
		return err
	}
	id, ok := mailwhy.FindID(a.asked)
	if ok {
		a.query.ID = id
		return nil
	}
	if a.asked != "<>" {
		if !strings.Contains(a.asked, "@") {
			return fmt.Errorf("%q is neither an id nor an address: an id has 12 letters and digits from 2 to 7, as at the end of a refusal (\"id 2ZFPDJSVUUAR\")%s",
				a.asked, check.SuggestAddress(a.asked))
		}
		if _, err := sender.Parse(bare(a.asked)); err != nil {
			return fmt.Errorf("%q is not an address: %w", a.asked, err)
		}
	}
	a.query.Address, err = local.ShownAddress(a.config, a.asked)
	return err
}

func bare(address string) string { return strings.TrimSuffix(strings.TrimPrefix(address, "<"), ">") }

// search searches the history. In a fleet it asks all gates, but for an id that this one knows.
func (a *answer) search(here bool) (err error) {
	byID := a.query.ID != ""
	last := min(10*a.most, maxFound)
	if byID {
		last = maxDecisions
	}
	a.page, err = a.find(a.query, last, here || byID)
	if err == nil && byID && !here && len(a.page.Decisions) == 0 {
		a.page, err = a.find(a.query, last, false)
	}
	if err != nil {
		return err
	}
	for _, d := range a.page.Decisions {
		i := slices.IndexFunc(a.messages, func(m *message) bool { return m.id == d.ID && m.gate == d.Gate })
		if i < 0 {
			i = len(a.messages)
			a.messages = append(a.messages, &message{id: d.ID, gate: d.Gate, more: byID && a.page.Next != ""})
		}
		a.messages[i].decisions = slices.Insert(a.messages[i].decisions, 0, d.Decision)
	}
	if byID {
		return nil
	}
	a.more = a.page.Next != "" || len(a.messages) > a.most
	a.messages = a.messages[:min(a.most, len(a.messages))]
	for _, m := range a.messages[:min(maxCompleted, len(a.messages))] {
		if err := a.complete(m); err != nil {
			return err
		}
	}
	return nil
}

// complete fetches all decisions about a message. Those that were found are about the address.
func (a *answer) complete(m *message) error {
	q := history.Query{ID: m.id, Since: a.query.Since, Limit: maxDecisions}
	var rest fleetsearch.Page
	var err error
	if m.gate == "" || m.gate == a.config.Fleet.Name {
		var page history.Page
		page, err = a.history.Find(a.ctx, q)
		rest = fleetsearch.Alone(page)
	} else {
		rest, err = a.history.Fleet(a.ctx, q, m.gate)
	}
	if err != nil {
		return err
	}
	if !rest.Whole() {
		m.more = true
		return nil
	}
	m.decisions, m.more = nil, rest.Next != ""
	for _, d := range slices.Backward(rest.Decisions) {
		m.decisions = append(m.decisions, d.Decision)
	}
	return nil
}

// all returns the decisions about all messages, those about the newest message first.
func (a *answer) all() (all []history.Decision) {
	for _, m := range a.messages {
		all = append(all, m.decisions...)
	}
	return all
}

// askNow asks the lists on disk about the senders of the messages, the newest first.
func (a *answer) askNow() {
	if len(a.messages) == 0 {
		return
	}
	questions := a.questions()
	if len(questions) == 0 {
		a.notNow = a.noSender()
		return
	}
	lists, err := a.lists()
	if err != nil {
		a.notNow = err.Error()
		return
	}
	for _, q := range questions {
		p := present{Listener: q.Listener, address: q.Address}
		answer, err := lists.Address(a.ctx, q)
		if err != nil {
			p.Error = err.Error()
		} else {
			var text strings.Builder
			answer.Print(&text)
			p.Result, p.text = answer.JSON, text.String()
		}
		a.presents = append(a.presents, p)
	}
}

// questions returns what to ask the lists. If the history has hashes, the address that was asked
// for is known all the same.
func (a *answer) questions() []check.Question {
	all := a.all()
	if a.query.Address != "" && a.query.Address != a.asked && !a.domainsOnly() {
		q := history.Query{Sender: a.query.Address}
		for i := range all {
			switch d := &all[i]; {
			case d.Sender == a.query.Address:
				d.Sender = bare(a.asked)
			case q.Match(d):
				d.HeaderSenders = slices.Concat(d.HeaderSenders, []string{bare(a.asked)})
			}
		}
	}
	return check.PastQuestions(all, maxNow, maxNowRecipients)
}

// domainsOnly reports whether the messages may be those of others at the domain.
func (a *answer) domainsOnly() bool { return strings.HasPrefix(a.query.Address, "*@") }

// lists returns what says what would happen now, by the lists on disk.
func (a *answer) lists() (*check.Engine, error) {
	set, err := local.ReadLists(a.ctx, a.config, term.Escape(a.cmd.ErrOrStderr()))
	if err != nil {
		return nil, err
	}
	o, err := check.OnDisk(a.ctx, a.config, set, false)
	return check.New(o), err
}

// noSender says why there is no sender to ask about.
func (a *answer) noSender() string {
	for _, d := range a.all() {
		if mailwhy.NotAddress(&d) != "" {
			return "<" + d.Sender + "> is not an address, so no list can be asked about it"
		}
	}
	return "the history does not show the sender's address: spamgate check ADDRESS says it, if you know the address"
}
