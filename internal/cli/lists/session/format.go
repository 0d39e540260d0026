package session

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/listfiles"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// FormatFlags are the flags for reading a file that is not a configured list.
type FormatFlags struct {
	format            string
	column            string
	exact             bool
	Allow             bool
	allowPublicSuffix bool
	perRecipient      bool
}

// Add adds --format and --column.
func (f *FormatFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.format, "format", "f", string(listfile.Auto), "the format: `F` is "+formatNames())
	cmd.Flags().StringVar(&f.column, "column", "", "with --format csv: the `COLUMN`, its name or number\n(default: the only one called domain, email,\nhost or the like, else the first); with json: the\npath to the entries, such as data.domain")
}

// AddMatching adds the flags that say how entries match.
func (f *FormatFlags) AddMatching(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.exact, "exact", false, "as in a list with match = \"exact\"")
	cmd.Flags().BoolVar(&f.allowPublicSuffix, "allow-public-suffix", false, "accept entries such as com and co.uk")
}

// AddPerRecipient adds the flag for files with lines for recipients.
func (f *FormatFlags) AddPerRecipient(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.perRecipient, "per-recipient", false, "as in a list with per_recipient = true")
}

// FormatChanged returns the first of these flags that was given, or "".
func (f *FormatFlags) FormatChanged(cmd *cobra.Command) string {
	for _, name := range []string{"format", "column", "exact", "allow", "allow-public-suffix", "per-recipient"} {
		if cmd.Flags().Changed(name) { // false of one that the command lacks
			return name
		}
	}
	return ""
}

// formatNames returns the names of the formats, wrapped for a help text of 80 columns.
func formatNames() string {
	names := make([]string, len(listfile.Formats))
	for i, f := range listfile.Formats {
		names[i] = string(f)
		if i == 3 || i == 7 || i == 11 {
			names[i] = "\n" + names[i]
		}
	}
	return strings.ReplaceAll(strings.Join(names, ", "), " \n", "\n")
}

// Options returns the options for reading the file.
func (f *FormatFlags) Options() (listfile.Options, error) {
	o := listfile.Options{
		Format: listfile.Format(f.format), Column: f.column,
		Exact: f.exact, Allow: f.Allow, AllowPublicSuffix: f.allowPublicSuffix, PerRecipient: f.perRecipient,
	}
	if f.perRecipient && o.Format == listfile.Auto {
		o.Format = listfile.Plain
	}
	if f.format == "" || !o.Format.Known() {
		return o, fmt.Errorf("--format %s: unknown; use one of %s", f.format, strings.ReplaceAll(formatNames(), "\n", " "))
	}
	if f.perRecipient && o.Format != listfile.Plain {
		return o, fmt.Errorf("--per-recipient goes with --format plain: only a plain list has lines for recipients")
	}
	if f.column != "" && !o.Format.HasColumn() {
		return o, fmt.Errorf("--column goes with --format csv or json")
	}
	return o, nil
}

// ProblemAt is an invalid or unsupported line, or a warning, with its place.
type ProblemAt struct {
	File        string `json:"file"`
	Line        int    `json:"line"`
	Text        string `json:"text"`
	What        string `json:"what"`
	Hint        string `json:"hint,omitempty"`
	Unsupported bool   `json:"unsupported,omitempty"`
	Warning     bool   `json:"warning,omitempty"`
	LeftOut     bool   `json:"left_out,omitempty"` // a valid entry that the gate leaves out
}

// NewProblemAt returns a problem of a file.
func NewProblemAt(file string, p listfile.Problem) ProblemAt {
	return ProblemAt{File: file, Line: p.Line, Text: p.Text, What: p.What, Hint: p.Hint, Unsupported: p.Unsupported}
}

// String formats the problem for people.
func (p ProblemAt) String() string {
	s := fmt.Sprintf("%s:%d: ", term.ShortPath(p.File), p.Line)
	if p.Warning {
		s += "warning: "
	}
	s += fmt.Sprintf("%q: %s", p.Text, p.What)
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

// ReadReport counts the contents of a file.
type ReadReport struct {
	Format      listfile.Format `json:"format"`
	Packed      string          `json:"packed,omitempty"`
	Entries     int             `json:"entries"`
	Invalid     int             `json:"invalid"`
	Unsupported int             `json:"unsupported"`
	Unread      int             `json:"unread_exceptions,omitempty"` // of the unsupported ones
	Expired     int             `json:"expired"`
	Notes       []string        `json:"notes,omitempty"`
}

// NewReadReport returns the counts of a file that was read.
func NewReadReport(r listfile.Result) ReadReport {
	return ReadReport{
		Format: r.Format, Packed: r.Packed, Entries: r.Entries,
		Invalid: r.Invalid, Unsupported: r.Unsupported, Unread: r.Unread, Expired: r.Expired, Notes: r.Notes,
	}
}

// Describe formats the report for people, without the notes.
func (r ReadReport) Describe() string {
	format := string(r.Format)
	if r.Packed != "" {
		format += " in " + r.Packed
	}
	s := fmt.Sprintf("%s; %s", format, text.Count(r.Entries, "entry", "entries"))
	s += Also(r.Invalid, "invalid line", "invalid lines") + Also(r.Unsupported, "unsupported line", "unsupported lines")
	if r.Unread > 0 {
		s += fmt.Sprintf(" (%s)", text.Count(r.Unread, "exception that cannot be read", "exceptions that cannot be read"))
	}
	return s + Also(r.Expired, "entry whose time is over", "entries whose time is over")
}

// RefusedBecause returns why a gate would refuse the file, or "". Like the guard of the
// store it refuses files of 1,000 lines or more if more than 1% of them are invalid.
func RefusedBecause(r listfile.Result) string {
	lines := r.Entries + r.Invalid
	if lines < 1000 || r.Invalid*100 <= lines {
		return ""
	}
	return fmt.Sprintf("a gate would not take it: of %d lines %d are invalid; is the format right?", lines, r.Invalid)
}

// Warning returns a warning about an entry, whose file is not set.
func Warning(e listfile.Entry, what, hint string) ProblemAt {
	return ProblemAt{Line: e.Line, Text: listfiles.Written(e), What: what, Hint: hint, Warning: true}
}

// CoversTenants reports whether an entry covers the names of a hosting company's
// customers, and the company's own.
func CoversTenants(e listfile.Entry) (domain string, ok bool) {
	domain = strings.TrimPrefix(e.Key, "*.")
	return domain, (e.Kind == sender.KindDomain || e.Kind == sender.KindSubdomains) && listfile.HasTenants(domain)
}

// Also returns a number of things after a comma, or "" if there are none.
func Also(n int, item, many string) string {
	if n == 0 {
		return ""
	}
	return ", " + text.Count(n, item, many)
}
