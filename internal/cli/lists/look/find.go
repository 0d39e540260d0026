package look

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/check"
	"spamgate/internal/cli"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/term"
)

type listsFindOptions struct {
	session.Flags
	reasons bool
}

func newListsFindCommand() *cobra.Command {
	var o listsFindOptions
	cmd := &cobra.Command{
		Use:   "find PATTERN [--list NAME] | --for ADDRESS",
		Short: "Find entries in all lists",
		Long: `Find entries in all lists on disk. PATTERN is

  an address          user@mail.spam.example: every entry that matches it,
                      whatever its form, exceptions included; also '<>'
  a part of an entry  spam.example: the entries that contain it
  a pattern with *    '*@*.spam.example': the entries that match it

With --for ann@example.net the output has only what counts for that recipient:
of lists with per_recipient = true the lines for the address, without PATTERN
all of them; of other lists what PATTERN finds. In the output the recipient's
side and a space precede the entry.

Each line of output has the list, file and line number, the entry in normal
form, and the reason, separated by tabs. Further fields are the end of the entry
(until=TIME), and why the gate skips it: it has expired, it covers a protected
domain, or it is <> or name@ in a list from a URL. spamgate check ADDRESS shows
what the gate does with an address.

Exit codes: 0 something was found; 1 nothing was found; 2 an error.`,
		Example: `  spamgate lists find user@mail.spam.example
  spamgate lists find spam.example --list blocked
  spamgate lists find --for ann@example.net
  spamgate lists find '*.example'
  spamgate lists find --reasons newsletter --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && (len(args) > 0 || o.Recipient == "") {
				return fmt.Errorf("accepts 1 argument, a pattern, and not %d; write one with a * in quotes, as '*.spam.example'", len(args))
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&o.List, "list", "l", "", "search only the list `NAME`")
	o.AddFor(cmd, "search what counts for the recipient `ADDRESS`; with\n@example.net and the like, the lines that say so")
	cmd.Flags().BoolVar(&o.reasons, "reasons", false, "search reasons and notes, too")
	o.AddJSON(cmd)
	cmd.Flags().Lookup("json").Usage = "print one JSON object per line"
	o.Runs(cmd, func(s *session.Session, args []string) error { return listsFind(s, o, args) })
	return cmd
}

func listsFind(s *session.Session, o listsFindOptions, args []string) error {
	pattern := strings.Join(args, "")
	if len(args) > 0 && strings.TrimSpace(pattern) == "" {
		return errors.New("nothing to look for: give an address, a part of an entry, or a pattern with *")
	}
	forRecipient, err := recipientMatcher(o.Recipient)
	if err != nil {
		return err
	}
	c := s.Config
	all := len(listfiles.WithFiles(c))
	if o.List != "" {
		l, err := listfiles.Find(c, o.List)
		if err != nil {
			return err
		}
		c.Lists, all = []config.List{l}, 1
	}
	keys, wanted := newMatcher(pattern, o.reasons)
	guarded := listfiles.NewProtection(c)
	lists := listfiles.Readable(c, s.Stderr)
	if pattern == "" { // what counts for all is not asked about
		read := len(lists)
		lists = slices.DeleteFunc(lists, func(l *listfiles.List) bool { return !l.PerRecipient })
		all -= read - len(lists)
	}
	out := bufio.NewWriter(term.Escape(s.Cmd.OutOrStdout()))
	n := 0
	scan := listfiles.NewScan(s, lists, s.Stderr)
	found := func(f listfiles.Located) error {
		if !wanted(f.Entry) || !forRecipient(f.Entry.For) {
			return nil
		}
		n++
		return printFound(out, f, leftOut(f, guarded), o.JSON)
	}
	if keys != nil {
		err = scan.Keys(lists, s.Indexes(), keys, found)
	} else {
		err = scan.Lists(lists, found)
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		return err
	}
	switch {
	case scan.Failed || len(lists) < all:
		return listfiles.ErrIncomplete
	case n == 0:
		fmt.Fprintf(s.Stderr, "nothing found%s%s\n", findHint(pattern), forHint(o.Recipient, pattern, lists))
		return cli.ErrNo
	}
	return nil
}

// recipientMatcher returns a function that reports whether a recipient's side of an entry is
// for a recipient: one that matches an address, or else the same. "" is for everybody.
func recipientMatcher(recipient string) (func(side string) bool, error) {
	if recipient == "" {
		return func(string) bool { return true }, nil
	}
	if err := session.CheckFor(recipient); err != nil {
		return nil, err
	}
	e, err := listfile.ParseEntry(recipient, listfile.Options{})
	if err != nil {
		return nil, err
	}
	sides := []string{"", e.Key}
	if e.Kind == sender.KindAddress {
		a, err := sender.Parse(recipient)
		if err != nil {
			return nil, err
		}
		sides = append(sides, listfile.Matching(a)...)
	}
	return func(side string) bool { return slices.Contains(sides, side) }, nil
}

// findHint suggests another search.
func findHint(pattern string) string {
	if hint := check.SuggestAddress(pattern); hint != "" {
		return strings.Replace(hint, "to ask about the domain, give ", "to see what matches the domain, look for ", 1)
	}
	return ""
}

// forHint says how to find the lines for an address, if a search for it as a sender finds
// nothing.
func forHint(recipient, pattern string, lists []*listfiles.List) string {
	a, err := sender.Parse(strings.TrimSpace(pattern))
	if recipient != "" || err != nil || a.Domain() == "" ||
		!slices.ContainsFunc(lists, func(l *listfiles.List) bool { return l.PerRecipient }) {
		return ""
	}
	return "; for lines for this recipient: spamgate lists find --for " + term.ShellWord(pattern)
}

// newMatcher returns a function that reports whether an entry fits the pattern, and the keys
// of all such entries if they are known.
func newMatcher(pattern string, reasons bool) (keys []string, wanted func(listfile.Entry) bool) {
	pattern = strings.TrimSpace(pattern)
	part := normalPart(pattern)
	matches := func(text string) bool { return strings.Contains(text+".", part) } // DNS ends names in a dot
	inComment := func(e listfile.Entry) bool {
		return reasons && (matches(strings.ToLower(e.Reason)) || matches(strings.ToLower(e.Note)))
	}
	a, err := sender.Parse(pattern)
	switch {
	case err == nil && !strings.Contains(pattern, "*") && (a.IsNull() && pattern != "" || a.Local() != ""):
		matching := listfile.Matching(a)
		if !reasons {
			keys = matching
		}
		return keys, func(e listfile.Entry) bool { return slices.Contains(matching, e.Key) || inComment(e) }
	case strings.Contains(pattern, "*"):
		matches = like(strings.ToLower(pattern))
	}
	return nil, func(e listfile.Entry) bool { return matches(listfiles.Written(e)) || inComment(e) }
}

// normalPart returns a part of an entry in the normal form of entries.
func normalPart(s string) string {
	before, domain, found := strings.Cut(s, "@")
	if !found {
		before, domain = "", s
	} else {
		before = strings.ToLower(before) + "@"
	}
	name := strings.TrimSuffix(domain, ".")
	if d, err := sender.NormalizeDomain(name); err == nil && strings.Trim(name, ".") == name {
		domain = d + domain[len(name):]
	}
	return before + strings.ToLower(domain)
}

// like reports whether a text is like a pattern, in which each * stands for
// anything.
func like(pattern string) func(string) bool {
	parts := strings.Split(pattern, "*")
	first, middle, last := parts[0], parts[1:len(parts)-1], parts[len(parts)-1]
	return func(text string) bool {
		text, ok := strings.CutPrefix(text, first)
		for _, part := range middle {
			pos := strings.Index(text, part)
			if pos < 0 {
				return false
			}
			text = text[pos+len(part):]
		}
		return ok && strings.HasSuffix(text, last)
	}
}

// leftOut returns why a gate would leave an entry out, or "" if it would not.
func leftOut(f listfiles.Located, guarded listfiles.Protection) string {
	if f.Over() {
		return "left out: its time is over"
	}
	if why := guarded.LeftOut(f.List, f.Entry); why.Omitted() {
		return "left out: " + why.What()
	}
	return ""
}

// foundEntry is an entry that was found, for programs.
type foundEntry struct {
	listfiles.EntryInfo
	LeftOut string `json:"left_out,omitempty"` // why it does not count
}

func printFound(w io.Writer, f listfiles.Located, left string, asJSON bool) error {
	entryInfo := f.At()
	if asJSON {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(foundEntry{entryInfo, left})
	}
	until := ""
	if entryInfo.Until != "" {
		until = "\tuntil=" + entryInfo.Until
	}
	if left != "" {
		left = "\t" + left
	}
	_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s%s%s\n", entryInfo.List, entryInfo.Place(), entryInfo.Text(), term.OneField.Replace(entryInfo.Reason), until, left)
	return err
}
