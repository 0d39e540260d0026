package recipients

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// maxSize bounds a file, in bytes.
const maxSize = 256 << 20

// From guardEntries entries on, a version that has lost more than one in shrinkShare is
// held. One with more than one invalid line in invalidShare always is.
const (
	guardEntries = 1000
	shrinkShare  = 5
	invalidShare = 100
)

// Why a version is not used. Use errors.Is.
var (
	ErrShrunk  = errors.New("shrunk too much")
	ErrEmpty   = errors.New("no entry in it")
	ErrInvalid = errors.New("too many invalid lines")
	ErrChanged = errors.New("changed while it was read")

	// ErrNothingHeld says that there is nothing to accept.
	ErrNothingHeld = errors.New("nothing is held that could be accepted")
)

// stamp is how a file looks from outside.
type stamp struct {
	info    fs.FileInfo // nil if there is a failure
	failure error       // why it cannot be read
	looked  time.Time
}

// racyFor is how long after a change the time of the file may fail to show the next one.
const racyFor = 2 * time.Second

// stampOf returns the stamp of a file.
func stampOf(path string) stamp {
	info, err := os.Stat(path)
	return stamp{info, err, time.Now()}
}

// differs reports whether a file looks different from before.
func (s stamp) differs(before stamp) bool {
	switch {
	case s.failure != nil && before.failure != nil:
		return s.failure.Error() != before.failure.Error()
	case s.info == nil || before.info == nil:
		return true
	}
	return !os.SameFile(s.info, before.info) || s.info.Size() != before.info.Size() || !s.info.ModTime().Equal(before.info.ModTime())
}

// changed reports whether a file may have changed since it was read.
func (s stamp) changed(read stamp) bool {
	return s.differs(read) || s.info != nil && read.looked.Sub(read.info.ModTime()) < racyFor
}

// readFile reads a file that has a stamp.
func readFile(spec Spec, current stamp) (*content, []byte, error) {
	fail := func(err error, hint string) (*content, []byte, error) {
		return nil, nil, fmt.Errorf("%w; %s", err, hint)
	}
	write := "write the path of a regular file in " + spec.key()
	switch err := current.failure; {
	case errors.Is(err, fs.ErrNotExist):
		return fail(err, "put the file there, or write another path in "+spec.key())
	case errors.Is(err, fs.ErrPermission):
		return fail(err, "let the gate's user read the file, and enter its directories")
	case err != nil:
		return fail(err, write)
	case !current.info.Mode().IsRegular():
		return fail(fmt.Errorf("%s is not a regular file", spec.Path), write)
	case current.info.Size() > maxSize:
		return fail(fmt.Errorf("%s has %d bytes, more than %d", spec.Path, current.info.Size(), maxSize), "write the path of a file with one entry a line")
	}
	f, err := os.OpenFile(spec.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fail(err, "let the gate's user read the file")
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return fail(err, "mend the file")
	}
	if info, err := f.Stat(); err != nil || (stamp{info: info}).differs(current) || int64(len(raw)) != info.Size() {
		return fail(fmt.Errorf("%s: %w", spec.Path, ErrChanged), "it is read again soon; to replace it at once, rename another file to its name")
	}
	c, err := parse(bytes.NewReader(raw), spec.Kind)
	c.blank = len(bytes.TrimSpace(raw)) == 0
	return c, raw, err
}

// check returns an error if a version looks wrong beside the one that serves.
func check(spec Spec, c *content, was *version, accept bool) error {
	switch n := c.entries(); {
	case c.invalid*invalidShare > c.lines:
		p := c.first
		return fmt.Errorf("%w: %d of %d; the first: %s:%d: %q %s; correct the lines", ErrInvalid, c.invalid, c.lines, spec.Path, p.Line, p.Text, p.What)
	case n == 0 && spec.Kind == RecipientPolicy:
		// Nobody may have the policy now, as a comment in the file says.
		if c.blank && was != nil && was.entries() > 0 {
			return fmt.Errorf("%s: %w, and %d before; if nobody is to have the policy, write a comment into the file, such as # nobody", spec.Path, ErrEmpty, was.entries())
		}
	case n == 0:
		return fmt.Errorf("%s: %w: all mail would be refused; write one entry a line, or to accept mail for every recipient remove policy.%s",
			spec.Path, ErrEmpty, spec.Kind)
	case was != nil && !accept && was.entries() >= guardEntries && n < was.entries()-was.entries()/shrinkShare:
		return fmt.Errorf("%s: %w: from %d to %d entries; if that is right, spamgate lists accept %s takes it",
			spec.Path, ErrShrunk, was.entries(), n, spec.Name())
	}
	return nil
}
