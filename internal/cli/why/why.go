// Package why is the command that says what happened to a message.
package why

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/check"
	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/logging"
	"spamgate/internal/mailwhy"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/words"
)

type options struct {
	file  string
	logs  []string
	unit  string
	since string
	most  int
	here  bool
	json  bool
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why ID|ADDRESS",
		Short: "Say what happened to a message, and what would happen now",
		Long: `Find a message in the history of decisions or in the gate's log, by the id that
a refusal has or by the address of a sender or a recipient, and say in words
what happened to it: which list and which line decided, and what the lists on
disk would do now, as check says. The text of a whole refusal, in quotes, does
as well as its id.

The command asks the history first. It reads the log if the history is off, does
not have the id or need not have all messages of the address, or if --log is
given. The answer says which of them it has searched.

In a fleet it asks the histories of all gates for an address, and for an id that
this gate does not know. The answer says which gate had a message, and which
gates did not answer within 3 seconds. It reads the log of this gate only.

It reads the log where [log] output puts it: a file with what was
rotated away of it, or the systemd journal of the unit. --log names another
file, such as that of a syslog daemon; "-" is standard input. Packed files are
read, too. If logs hash addresses, the key in the state directory finds an
address in them. If they show only domains, the messages may be those of others.

Exit codes: 0 something was found; 1 nothing was; 2 an error, or a log could not
be read, or nothing was found and a history could not be asked.`,
		Example: `  spamgate why 2ZFPDJSVUUAR
  spamgate why someone@example.org --since 7d
  spamgate why 2ZFPDJSVUUAR --log /var/log/mail.log --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one message by the id of a refusal, or one address; quote what has spaces")
			}
			return nil
		},
	}
	file := cli.ConfigFlag(cmd)
	var o options
	cmd.Flags().StringArrayVar(&o.logs, "log", nil, "read this log `FILE` and those rotated away; repeatable")
	cmd.Flags().StringVar(&o.unit, "unit", "spamgate", "read the journal of this `UNIT`")
	cmd.Flags().StringVar(&o.since, "since", "", "only lines since `TIME`: 7d, 12h, a day or a time")
	cmd.Flags().IntVar(&o.most, "last", 20, "show only the `N` newest messages")
	cmd.Flags().BoolVar(&o.here, "here", false, "ask this gate only, not the whole fleet")
	cmd.Flags().BoolVar(&o.json, "json", false, "print a JSON object")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.file = *file
		ctx, stop := cli.Interruptible(cmd)
		defer stop()
		return run(ctx, cmd, o, args[0])
	}
	cli.NameErrors(cmd)
	return cmd
}

// maxMessages bounds --last, and so the memory.
const maxMessages = 1000

func run(ctx context.Context, cmd *cobra.Command, o options, asked string) error {
	if o.most < 1 || o.most > maxMessages {
		return fmt.Errorf("--last %d: use a number from 1 to %d", o.most, maxMessages)
	}
	c, err := loadConfig(o)
	if err != nil {
		return err
	}
	stderr := term.Escape(cmd.ErrOrStderr())
	q, err := parseQuery(asked, c)
	if err != nil {
		return err
	}
	q.Most = o.most
	if o.since != "" {
		if q.Since, err = words.ParseSince(o.since, time.Now()); err != nil {
			return fmt.Errorf("--since: %w", err)
		}
	}
	s := mailwhy.NewSearch(q)
	var k kept
	if len(o.logs) == 0 {
		k = askHistory(ctx, c, o, q, s)
	}
	var read []string
	var unread error
	if !k.complete && ctx.Err() == nil {
		read, unread = readLogs(ctx, c, o, q, s, cmd.InOrStdin(), stderr)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if k.err != nil {
		fmt.Fprintf(stderr, "spamgate: the history of decisions cannot be asked, or not wholly: %v\n", local.HistoryError(k.err))
	}
	dns := onlyDNS(c)
	if k.found > 0 && unread != nil && len(read) == 0 {
		fmt.Fprintf(stderr, "spamgate: only the history is searched, which need not have accepted messages: %v\n", unread)
		unread = nil
	}
	if len(read) == 0 && unread != nil {
		if dns {
			unread = fmt.Errorf("%w. %s", unread, strings.TrimSuffix(dnsNotLogged, "."))
		}
		return unread
	}
	a := &answer{asked: asked, query: q, logs: read, onlyDNS: dns, kept: k, result: s.Result()}
	a.askNow(ctx, c, stderr)
	out := term.Escape(cmd.OutOrStdout())
	if o.json {
		err = cli.PrintJSON(out, a.forPrograms())
	} else {
		a.print(out)
	}
	switch {
	case err != nil || unread != nil:
		return errors.Join(err, unread)
	case len(a.result.Messages) == 0 && k.err != nil:
		return cli.ErrReported
	case len(a.result.Messages) == 0:
		return cli.ErrNo
	}
	return nil
}

// loadConfig loads the configuration, or returns nil if there is none and the logs are named.
func loadConfig(o options) (*config.Config, error) {
	c, err := config.Load(o.file)
	if errors.Is(err, fs.ErrNotExist) && len(o.logs) > 0 {
		return nil, nil
	}
	return c, err
}

// onlyDNS reports whether the gate answers over DNS only. Then the log has no message.
func onlyDNS(c *config.Config) bool {
	return c != nil && len(c.Listeners)+len(c.PolicyServices)+len(c.Milters) == 0 && len(c.DNSServers) > 0
}

// parseQuery returns what to look for.
func parseQuery(asked string, c *config.Config) (q mailwhy.Query, err error) {
	asked = strings.TrimSpace(asked)
	if id, ok := mailwhy.FindID(asked); ok {
		q.ID = id
		return q, nil
	}
	if asked != "<>" && !strings.Contains(asked, "@") {
		return q, fmt.Errorf("%q is neither an id nor an address: an id has 12 letters and digits from 2 to 7, as at the end of a refusal (\"id 2ZFPDJSVUUAR\")%s",
			asked, check.SuggestAddress(asked))
	}
	var hash func(string) string
	if c != nil {
		hash, err = setup.FindHashed(c)
		if err != nil && c.Log.Addresses == logging.AddressesHash {
			return q, fmt.Errorf("the log has hashes in place of addresses, and their key cannot be read: %w; run this as the gate's user or root, or ask for the id", err)
		}
	}
	if q.Address, err = mailwhy.NewAddress(asked, hash); err != nil {
		return q, fmt.Errorf("%q is not an address: %w", asked, err)
	}
	return q, nil
}

// readLogs reads the logs, and returns the names of those that it has read. The error says that
// some could not be.
func readLogs(ctx context.Context, c *config.Config, o options, q mailwhy.Query, s *mailwhy.Search, stdin io.Reader, stderr io.Writer) (read []string, err error) {
	logs := o.logs
	if len(logs) == 0 {
		path, isFile := strings.CutPrefix(c.Log.Output, logging.OutputFile)
		if !isFile {
			return readJournal(ctx, c, o, q, s)
		}
		logs = []string{path}
	}
	failed := false
	for _, log := range logs {
		if log == "-" {
			if err := readStdin(ctx, s, stdin); err != nil {
				return read, fmt.Errorf("standard input: %w", err)
			}
			read = append(read, "standard input")
			continue
		}
		files, err := mailwhy.Files(log, q.Since)
		if err != nil {
			return read, fmt.Errorf("%w; name the log with --log FILE", err)
		}
		for _, file := range files {
			err := s.ReadFile(ctx, file)
			if ctx.Err() != nil {
				return read, context.Cause(ctx)
			}
			if err != nil {
				failed = true
				fmt.Fprintf(stderr, "spamgate: not read, or not to its end: %v\n", err)
				continue
			}
			read = append(read, file)
		}
		if len(files) == 0 {
			read = append(read, log) // all of it is older than --since
		}
	}
	if failed {
		return read, errors.New("not all logs could be read, so there may be more; root can read them")
	}
	return read, nil
}

// readStdin reads standard input, where an interrupt does not end a read that waits.
func readStdin(ctx context.Context, s *mailwhy.Search, stdin io.Reader) error {
	done := make(chan error, 1)
	go func() { done <- s.Read(ctx, stdin, nil) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx) // and the process ends
	}
}

func readJournal(ctx context.Context, c *config.Config, o options, q mailwhy.Query, s *mailwhy.Search) ([]string, error) {
	err := s.ReadJournal(ctx, o.unit, q.Since)
	if errors.Is(err, mailwhy.ErrNoJournal) {
		return nil, fmt.Errorf("[log] output is %q, and there is %w: name the log with --log FILE, such as /var/log/mail.log, or pipe it to --log -", c.Log.Output, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; root and the group systemd-journal may read the journal; --log FILE names another log", err)
	}
	return []string{"the journal of the unit " + o.unit}, nil
}
