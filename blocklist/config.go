package blocklist

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// Defaults of a [Config].
const (
	DefaultPollInterval = 30 * time.Second
	DefaultDebounce     = 250 * time.Millisecond
	DefaultMaxDebounce  = 5 * time.Second
)

// List describes one list.
type List struct {
	// Name is unique among the lists, printable, and shown in logs and replies.
	Name string

	// Paths are absolute paths or globs (as in [filepath.Match]). A glob stands
	// for the files that match it now, in the order of their names; as in a
	// shell, "*" matches no leading dot (so no editor's lock or temporary
	// file), and directories are left out.
	Paths []string

	Type ListType

	// Action is what a block list's match asks for: Tag, Discard, Defer, Reject
	// or Monitor. An allow list has none (Accept, the zero value).
	Action Action

	// HeaderAction takes Action's place at stage Header; zero means Action.
	HeaderAction Action

	// Stages is where the list is looked up; zero means everywhere.
	Stages Stage

	// Exact makes an entry "example.com" match that domain alone, without its
	// subdomains.
	Exact bool

	// Override lets an allow list beat every block list, however specific.
	Override bool

	// Optional allows a start without a usable version: the list is empty until
	// there is one.
	Optional bool

	// AllowPublicSuffix makes entries such as "com" or "co.uk" valid.
	AllowPublicSuffix bool

	// PublicReason permits to show an entry's reason to clients. It changes
	// nothing here and is handed on in [Match].
	PublicReason bool
}

// action is what a match asks for at a stage.
func (l *List) action(stage Stage) Action {
	if stage == Header && l.HeaderAction != Accept {
		return l.HeaderAction
	}
	return l.Action
}

// Config is what a [Store] works from. It is not changed once handed over.
type Config struct {
	// Lists in the order in which ties are decided.
	Lists []List

	// Filter is what stands in front of the exact index.
	Filter Filter

	// Confirm makes the exact index confirm what the filter says; it should be
	// true. When false the filter alone decides, false positives included and
	// without file, line or reason: for comparing hash families. That allows
	// for one block list, without exceptions, and no allow list.
	Confirm bool

	// Monitor makes every list only log, see [Decision.Would].
	Monitor bool

	// PollInterval is how often the files are looked at whether or not the
	// file system reports changes. Zero means [DefaultPollInterval].
	PollInterval time.Duration

	// Debounce is how long a list's files must have been left alone before a
	// change is believed to be whole, and files must have been missing before
	// that is believed. MaxDebounce is how long a change waits for its writer
	// to finish at most. Zero means [DefaultDebounce], [DefaultMaxDebounce].
	Debounce, MaxDebounce time.Duration

	// Logger takes a line for each swap, invalid line and held list. Nil means
	// none.
	Logger *slog.Logger
}

// withDefaults fills in what zero values stand for.
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
	lists := make([]List, len(c.Lists))
	copy(lists, c.Lists)
	for i := range lists {
		if lists[i].Stages == 0 {
			lists[i].Stages = allStages
		}
	}
	c.Lists = lists
	return c
}

// Validate says everything that is wrong with the configuration, without
// looking at a file; nil if nothing is.
func (c Config) Validate() error {
	_, err := c.check()
	return err
}

// check is Validate, and lays out the filter.
func (c Config) check() (layout, error) {
	c = c.withDefaults()
	layout, err := c.Filter.layout()
	errs := []error{err}
	if c.PollInterval < 0 || c.Debounce < 0 || c.MaxDebounce < c.Debounce {
		errs = append(errs, fmt.Errorf("poll interval %v, debounce %v, at most %v: use positive times, the last no shorter than the second",
			c.PollInterval, c.Debounce, c.MaxDebounce))
	}
	names := map[string]bool{}
	for i := range c.Lists {
		l := &c.Lists[i]
		if names[l.Name] {
			errs = append(errs, fmt.Errorf("list %q stands twice: give each list its own name", l.Name))
		}
		names[l.Name] = true
		for _, err := range l.check() {
			errs = append(errs, fmt.Errorf("list %q: %w", l.Name, err))
		}
	}
	errs = append(errs, c.checkConfirm())
	return layout, errors.Join(errs...)
}

// checkConfirm refuses lists among which the filter alone cannot tell.
func (c Config) checkConfirm() error {
	if c.Confirm || len(c.Lists) == 1 && c.Lists[0].Type == Block {
		return nil
	}
	return errors.New("confirm = false lets the filter alone decide, which cannot tell lists apart: use it with one block list, no exceptions and no allow list, or set confirm = true")
}

func (l *List) check() []error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !printable(l.Name) {
		fail("the name must not be empty, nor hold anything unprintable, nor begin or end with a space")
	}
	if len(l.Paths) == 0 {
		fail("no path given")
	}
	for _, p := range l.Paths {
		if !filepath.IsAbs(p) {
			fail("path %q is not absolute", p)
		}
		if _, err := filepath.Match(p, ""); err != nil {
			fail("path %q is no valid glob: close every [, or escape it with a backslash", p)
		}
	}
	if l.Stages&^allStages != 0 {
		fail("unknown stage %d: use envelope, header or both", l.Stages)
	}
	switch l.Type {
	case Block:
		if !blockAction(l.Action) {
			fail("action %s is none of a block list's: use reject, defer, discard, tag or monitor", l.Action)
		}
		if l.HeaderAction != Accept && !blockAction(l.HeaderAction) {
			fail("header action %s is none of a block list's: use reject, defer, discard, tag or monitor", l.HeaderAction)
		}
		if l.Override {
			fail("override is for allow lists: leave it out, or make the list an allow list")
		}
	case Allow:
		if l.Action != Accept || l.HeaderAction != Accept {
			fail("an allow list has no action: leave it out, or make the list a block list")
		}
	default:
		fail("unknown type %s: use block or allow", l.Type)
	}
	return errs
}

func blockAction(a Action) bool { return a > Accept && a <= Monitor }

func printable(name string) bool {
	return name != "" && strings.TrimSpace(name) == name &&
		strings.IndexFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) < 0
}
