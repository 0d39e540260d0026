package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
)

// readPlan is what readVersion needs besides the files.
type readPlan struct {
	options   readOptions
	guards    guards
	opener    Opener
	protected *Protected
	follow    func(path string, from io.Reader) io.Reader // may be nil
	list      *List
	before    *version              // which it would replace; nil: none
	served    []servedVersion       // with which its size is compared: see source.comparable
	kept      func([]stamp) bool    // whether the history has a version of this content
	accepted  func(sum string) bool // whether a content may look wrong
	known     string                // the sum of what serves, and is read once more in the same way; "": nothing
	dir       string                // for temporary files
	name      string                // of the file in the state directory where the index goes; "": none
	path      string                // its path; "": to no file with a name
	bits      *bitsFile             // where the index's part of the filter goes
	keys      *blocklist.Keys
	log       *slog.Logger

	// open reads the files; nil: [Opener.readStamped] of opener.
	open func(ctx context.Context, path string, use func(io.Reader) error) (stamp, error)
}

// readVersion reads the files that stamps describe, and returns their stamps with digests. It
// fails with ErrChanged if they are no longer as described. It reads a list that looks wrong
// to its end, so that its content can be named.
func readVersion(ctx context.Context, p readPlan, stamps []stamp) (v *version, read []stamp, err error) {
	started := time.Now()
	c := collector{options: p.options, open: p.open, follow: p.follow, now: started}
	if c.open == nil {
		c.open = p.opener.readStamped
	}
	c.omissions = p.list.Omissions(p.protected)
	c.builder = segment.NewBuilder(segment.BuildOptions{Dir: p.dir, Key: p.keys.Segment()})
	defer c.builder.Abort()
	for i, s := range stamps {
		got, err := c.read(ctx, i, s)
		if contentError(err) {
			return nil, stamps, err
		}
		if err != nil {
			return nil, nil, err
		}
		read = append(read, got)
	}
	if err := p.looksWrong(&c, read); err != nil {
		return nil, read, err
	}
	// Without the monotonic reading: the clock may be set back.
	c.Loaded = time.Now().Round(0)
	if !p.options.noExceptions { // else no lookup asks the index whether the time is over
		c.Pause = min(pauses*time.Since(started), time.Hour).Truncate(time.Microsecond)
	}
	header, err := storedHeader(p.keys, p.list, p.options, &c.content, read)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.builder.Finish(ctx, p.path, header)
	if err != nil {
		return nil, nil, buildError{err}
	}
	forced, err := p.otherSize(&c.content, s, read)
	if err != nil {
		return nil, read, err
	}
	logBuilt(p.log, p.list.Name, c.Entries, time.Since(started))
	v = newVersion(s, c.content, read, p.bits)
	v.forced = forced
	return v, read, nil
}

// contentError reports whether an error is about what a file holds: reading it once more would
// not help.
func contentError(err error) bool {
	for _, content := range []error{listfile.ErrBinary, listfile.ErrUTF16, listfile.ErrPacked, listfile.ErrSyntax, ErrTooBig, ErrException} {
		if errors.Is(err, content) {
			return true
		}
	}
	return false
}

// looksWrong applies the guards. A content that was accepted passes those that compare the
// list with what it was, but not those that find that it is not such a list.
func (p *readPlan) looksWrong(c *collector, read []stamp) error {
	if p.options.hold && c.Protected > 0 {
		return p.holds(first(c.Problems, protectedLine))
	}
	sum := sumOf(read)
	if sum != "" && sum == p.known {
		return nil
	}
	for _, check := range []func(*collector) error{p.emptied, p.tooManyInvalid, p.tooLong} {
		if err := check(c); err != nil && !(acceptable(err) && p.accepted(sum)) {
			return err
		}
	}
	return nil
}

// holds returns the error of a list with an entry that covers a protected name.
func (p *readPlan) holds(entry *blocklist.FileProblem) error {
	where := "take the entry out"
	if p.list.URL != "" {
		where = "have it taken out where the list comes from"
	}
	return fmt.Errorf("%s:%d: %w: %q: %s; %s, or set on_protected = \"skip\" for this list (leaves such entries out) or \"accept\"",
		entry.File, entry.Line, ErrProtected, entry.Text, entry.What, where)
}

// emptied looks for files of 0 bytes that had entries. A packed file counts as empty if its
// content is empty. A failed download that is piped into gzip leaves such a file.
func (p *readPlan) emptied(c *collector) error {
	for _, f := range c.Files {
		if slices.Contains(c.empty, f.Path) && p.before.entriesOf(f.Path) > 0 {
			return &fs.PathError{Op: "read", Path: f.Path, Err: ErrEmptied}
		}
	}
	return nil
}

func (p *readPlan) tooLong(c *collector) error {
	if err := tooLong(c.Entries+c.Invalid, p.before.entriesOf(""), c.long); err != nil {
		return &fs.PathError{Op: "read", Path: c.long.File, Err: err}
	}
	return nil
}

// tooManyInvalid checks each file, and all together. In a list from a URL that had entries, a file
// with nothing but invalid lines is too much however short the list is: it is a server's message.
func (p *readPlan) tooManyInvalid(c *collector) error {
	for _, f := range c.Files {
		if f.Invalid == 0 {
			continue
		}
		problems := slices.DeleteFunc(slices.Clone(c.Problems), func(p blocklist.FileProblem) bool { return p.File != f.Path })
		if err := tooManyInvalid(f.Entries, f.Invalid, p.before.entriesOf(f.Path), problems); err != nil {
			return &fs.PathError{Op: "read", Path: f.Path, Err: err}
		}
	}
	before := p.before.entriesOf("")
	valid := c.Entries + c.Expired + c.Protected + c.Disallowed + c.Unsupported
	if p.list.URL != "" && before > 0 && valid == 0 && c.Invalid > 0 {
		return invalidLines(c.Invalid, c.Invalid, c.Problems)
	}
	return tooManyInvalid(c.Entries, c.Invalid, before, c.Problems)
}

// otherSize compares how many entries the list has with how many it had. If there is one file,
// its error names it. Forced says that the list would be held, and was accepted. It needs the
// index, which knows repeated and cancelled entries.
func (p *readPlan) otherSize(c *content, index *segment.Segment, read []stamp) (forced bool, err error) {
	sum := sumOf(read)
	if sum != "" && sum == p.known {
		return false, nil
	}
	n := c.sizes(index.Len(), index.Exceptions())
	err = p.guards.check(n, p.served, p.list.URL != "", time.Now())
	switch {
	case err == nil || !errors.Is(err, ErrFew) && p.servedWhole(n, sum, read):
		return false, nil
	case p.accepted(sum):
		return true, nil
	}
	if len(c.Files) == 1 {
		err = &fs.PathError{Op: "read", Path: c.Files[0].Path, Err: err}
	}
	return false, err
}

// servedWhole reports whether the content served before, and no more of it has expired since
// than a list may lose.
func (p *readPlan) servedWhole(n sizes, sum string, read []stamp) bool {
	for _, v := range p.served {
		if v.Sum == sum {
			return float64(n.Left[0]) >= float64(v.Left[0])*(1-p.guards.maxShrink)
		}
	}
	return p.kept(read)
}
