package store

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
)

// Defaults of a [Config].
const (
	DefaultPollInterval = 30 * time.Second
	DefaultDebounce     = 250 * time.Millisecond
	DefaultMaxDebounce  = 5 * time.Second
	DefaultMaxBytes     = 4 << 30
	DefaultMaxShrink    = 0.2
	DefaultMaxGrowth    = 10
)

// Rules are what an admin sets for a list. The tags are those of spamgate's configuration: its
// keys, and what they may be there.
type Rules struct {
	// In a list with a URL the entries "<>" and "name@" are left out unless these are
	// set: each matches mail from everywhere.
	AllowNullSender bool `toml:"allow_null_sender"`
	AllowLocalParts bool `toml:"allow_local_parts"`

	// MinEntries is the fewest entries in effect with which a list is not held.
	MinEntries int `toml:"min_entries" range:"0,10000000000"`

	// OnProtected says what to do with an entry that covers a protected name, or
	// names below it.
	OnProtected OnProtected `toml:"on_protected" oneof:"skip,hold,accept"`

	// Optional allows a start without a usable version: the list is empty until
	// there is one.
	Optional bool `toml:"optional"`
}

// List describes one list.
type List struct {
	// Name is unique among the lists, printable, and shown in logs and replies.
	Name string

	// Paths are absolute paths or globs (as in [filepath.Match]). A glob stands
	// for the files that match it now, in the order of their names. As in a
	// shell, "*" does not match a leading dot (so no editor's lock or temporary
	// file), and a glob leaves directories out.
	Paths []string

	URL string // where Paths, the copy, was fetched from

	Rules

	// Zone makes the list one that is asked over DNS instead of read: the zone's name as
	// logs may show it. It has no Paths, and only the fields that say what a match means, OnProtected and Exact
	// count. See [blocklist.Asked].
	Zone string

	// Format and Column are how the files are written; see [listfile.Options].
	Format listfile.Format
	Column string

	// MaxBytes is the largest file, as it is on disk and unpacked; 0 means
	// [DefaultMaxBytes].
	MaxBytes int64

	// MaxShrink is the largest part of its entries (0 to 1) that a list may lose at
	// once, by new exceptions, too, and with a URL by entries that expire. It
	// applies to lists that had 1,000 entries or more. MaxGrowth is the factor by
	// which a list may grow, and one of less than 1,000 entries counts as one of
	// 1,000. 0 means DefaultMaxShrink and DefaultMaxGrowth, a negative MaxGrowth any.
	MaxShrink, MaxGrowth float64

	Type blocklist.ListType

	// Action is what a block list's match asks for: Tag, Discard, Defer, Reject
	// or Monitor. An allow list has none (Accept, the zero value).
	Action verdict.Action

	// HeaderAction takes Action's place at stage Header; zero means Action.
	HeaderAction verdict.Action

	// Stages is where the list is looked up; zero means everywhere.
	Stages verdict.Stage

	// Exact makes an entry "example.com" match that domain alone, without its
	// subdomains.
	Exact bool

	// Override lets an allow list beat every block list, however specific.
	Override bool

	// AllowPublicSuffix makes entries such as "com" or "co.uk" valid.
	AllowPublicSuffix bool

	// ProvenBy and PerRecipient are those of [blocklist.List]. A list with PerRecipient
	// is written in the plain format; see [listfile.Options].
	ProvenBy     verdict.Proofs
	PerRecipient bool

	// Whole says that the files are only ever replaced whole, by renaming. A change then
	// counts at once; otherwise the files must have been left alone for some time.
	Whole bool

	// Begins makes the list empty while its files are missing and StateDir has never kept a
	// version of it: somebody is still to make them.
	Begins bool

	// PublicReason permits to show an entry's reason to clients. It changes
	// nothing here and is handed on in [verdict.Match].
	PublicReason bool
}

// rule returns what the matches of the list mean, if these names are protected.
func (l *List) rule(protected *Protected) blocklist.List {
	rule := blocklist.List{
		Name: l.Name, Type: l.Type, Action: l.Action, HeaderAction: l.HeaderAction,
		Stages: l.Stages, Override: l.Override, PublicReason: l.PublicReason,
		ProvenBy: l.ProvenBy, PerRecipient: l.PerRecipient,
	}
	if l.Zone != "" {
		rule.Asked = l.asked(protected)
	}
	return rule
}

// OnProtected says what to do with an entry that covers a protected name.
type OnProtected string

const (
	SkipProtected   OnProtected = "skip" // leave the entry out and report it; the default
	HoldProtected   OnProtected = "hold" // hold the list
	AcceptProtected OnProtected = "accept"
)

// Config is what a [Store] works from. It is not changed once handed over. The zero
// value has no lists, and accepts every sender.
type Config struct {
	// Lists in the order in which ties are decided.
	Lists []List

	// Filter is asked before the exact index.
	Filter blocklist.Filter

	// FilterOnly lets the filter alone decide, false positives included and
	// without file, line or reason: senders are refused that no list holds. It is
	// for comparing hash families, and allows for one block list, without
	// exceptions, and no allow list. When false, as by default, the exact index
	// confirms what the filter says.
	FilterOnly bool

	// StateDir is where indexes, filters, the key and the history are kept, so
	// that a start need not read the lists again. If it is empty nothing is kept,
	// and large indexes live in temporary files without a name. With ReadOnly the
	// Store uses what is up to date and can be read, and writes nothing.
	StateDir string
	ReadOnly bool

	// StoredFirst makes Open serve the stored version of a list of 100,000 lines or
	// more although its files have changed. They are read after a call of
	// [Store.Listening]: whatever happens then, clients are served.
	StoredFirst bool

	// History is how many earlier versions of each list are kept in StateDir,
	// besides the one that serves; see [Versions].
	History int

	// Protect holds domains, in normal form, that no block list's entry may cover,
	// nor any of their subdomains; see [List.OnProtected]. "@example.com" protects
	// example.com alone.
	Protect []string

	// OnHit, if not nil, is called for each entry that matches; see
	// [blocklist.SetConfig].
	OnHit func(list string, hash uint64)

	// Follow, if not nil, returns the reader through which a list file is read, to
	// show how far it is. Files are read one after the other.
	Follow func(path string, from io.Reader) io.Reader

	// Advise, if not nil, returns how the program's user gets a remedy. It is added to
	// the error of the list: "run x to fetch it".
	Advise func(list string, r Remedy) string

	// Monitor makes every list only log, see [verdict.Verdict.Would].
	Monitor bool

	// PollInterval is how often the Store looks at the files, whether or not the
	// file system reports changes. Zero means [DefaultPollInterval].
	PollInterval time.Duration

	// Debounce is how long a list's files must not have changed before a change
	// counts as complete, and how long files must have been missing before they
	// count as gone. MaxDebounce is the longest that a change waits for its writer
	// to finish. Zero means [DefaultDebounce], [DefaultMaxDebounce].
	Debounce, MaxDebounce time.Duration

	// Probes is the number of changed entries with which each filter is measured, see
	// [blocklist.Set.Probe]; 0 means [blocklist.DefaultSimilarProbes], and below 0 none is.
	Probes int

	// Logger logs each swap, invalid line and held list. Nil logs nothing.
	Logger *slog.Logger

	protected *Protected // Protect, once it was checked
}

// list checks the configuration, and returns the list of a name, which has files.
func (c *Config) list(name string) (*List, error) {
	err := c.check()
	if i := slices.IndexFunc(c.Lists, func(l List) bool { return l.Name == name }); i >= 0 && err == nil {
		if c.Lists[i].Zone == "" {
			return &c.Lists[i], nil
		}
		err = ErrAsked
	}
	return nil, fmt.Errorf("list %q: %w", name, cmp.Or(err, ErrUnknownList))
}

// withDefaults returns the configuration with the defaults filled in.
func (c Config) withDefaults() Config {
	if c.PollInterval == 0 {
		c.PollInterval = DefaultPollInterval
	}
	if c.Debounce == 0 {
		c.Debounce = DefaultDebounce
	}
	if c.MaxDebounce == 0 {
		c.MaxDebounce = max(DefaultMaxDebounce, c.Debounce)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Lists = slices.Clone(c.Lists)
	for i := range c.Lists {
		if l := &c.Lists[i]; l.Stages == 0 {
			l.Stages = verdict.AllStages
		}
	}
	return c
}

// Validate returns all that is wrong with the configuration. It looks at no file.
func (c Config) Validate() error {
	return c.check()
}

// check validates the configuration, and fills in the defaults and the protected names.
func (c *Config) check() (err error) {
	*c = c.withDefaults()
	errs := []error{c.Filter.Validate()}
	c.protected, err = Protect(c.Protect)
	errs = append(errs, err)
	if c.History < 0 {
		errs = append(errs, fmt.Errorf("history %d: use 0 or more", c.History))
	}
	if c.PollInterval < 0 || c.Debounce < 0 || c.MaxDebounce < c.Debounce {
		errs = append(errs, fmt.Errorf("poll interval %v, debounce %v, at most %v: use positive times, the last no shorter than the second",
			c.PollInterval, c.Debounce, c.MaxDebounce))
	}
	names := map[string]bool{}
	for i := range c.Lists {
		l := &c.Lists[i]
		if names[l.Name] {
			errs = append(errs, fmt.Errorf("list %q is configured twice: give each list its own name", l.Name))
		}
		names[l.Name] = true
		errs = append(errs, l.check())
	}
	errs = append(errs, c.checkConfirm())
	return errors.Join(errs...)
}

// checkConfirm returns an error for lists among which the filter alone cannot tell.
func (c Config) checkConfirm() error {
	if !c.FilterOnly || len(c.Lists) == 1 && c.Lists[0].Type == blocklist.Block && c.Lists[0].Zone == "" && !c.Lists[0].PerRecipient {
		return nil
	}
	return errors.New("confirm = false lets the filter alone decide, which cannot tell lists apart: use it with one block list without per_recipient, no exceptions and no allow list, or set confirm = true")
}

// check returns an error for each thing that is wrong with the list.
func (l *List) check() error {
	rule := l.rule(nil)
	errs := []error{rule.Validate()}
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("list %q: %w", l.Name, fmt.Errorf(format, args...)))
	}
	if l.Zone != "" && len(l.Paths) > 0 {
		fail("a list in DNS has no files: leave out the paths or the zone")
	}
	if l.Zone == "" && len(l.Paths) == 0 {
		fail("no path given")
	}
	for _, p := range l.Paths {
		if !filepath.IsAbs(p) {
			fail("path %q is not absolute", p)
		}
		if _, err := filepath.Match(p, ""); err != nil {
			fail("path %q is not a valid glob: close every [, or escape it with a backslash", p)
		}
	}
	if l.MaxBytes < 0 || l.MinEntries < 0 {
		fail("max_bytes %d, min_entries %d: use 0 or more", l.MaxBytes, l.MinEntries)
	}
	if !(l.MaxShrink >= 0 && l.MaxShrink <= 1) {
		fail("max_shrink %v: use 0 to 1, the part of its entries that the list may lose at once", l.MaxShrink)
	}
	switch l.OnProtected {
	case "", SkipProtected, HoldProtected, AcceptProtected:
	default:
		fail("on_protected %q is unknown: use skip, hold or accept", l.OnProtected)
	}
	if l.Format != "" && !slices.Contains(listfile.Formats, l.Format) {
		fail("format %q is unknown: use one of %v", l.Format, listfile.Formats)
	} else if l.PerRecipient && l.Format != "" && l.Format != listfile.Plain {
		fail("format %q has no recipients: use format plain, or leave out per_recipient", l.Format)
	}
	return errors.Join(errs...)
}
