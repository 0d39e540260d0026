package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"
)

// sizes are the counts of a list by which the guards compare its versions.
type sizes struct {
	Entries    int `json:"entries"` // all lines that are entries
	Exceptions int `json:"exceptions,omitempty"`

	// Left counts the entries in effect: each once, without exceptions and without
	// those that an exception for the same senders cancels. Left[0] counts them when the
	// list was read, Left[1] those of them that have not expired after the first of
	// [horizons] and so on, and the last one those that do not expire.
	Left [len(horizons) + 2]int `json:"left"`
}

// horizons are the times after which the guard of expiring entries looks how many are left.
var horizons = [...]time.Duration{24 * time.Hour, 7 * 24 * time.Hour}

// sizes returns the sizes of a version that was read.
func (c *content) sizes(entries, exceptions uint64) sizes {
	n := sizes{Entries: c.Entries, Exceptions: int(exceptions)}
	left := int(entries - exceptions)
	n.Left[0] = left
	for i, ending := range c.Ending {
		left = max(0, left-ending) // repeated ones were counted more than once
		n.Left[i+1] = left
	}
	return n
}

func (v *version) sizes() sizes {
	s := v.index.Segment()
	return v.content.sizes(s.Len(), s.Exceptions())
}

// after returns how many entries of a version are left when it has this age, or fewer.
func (n *sizes) after(age time.Duration) int {
	for i, horizon := range horizons {
		if age <= horizon {
			return n.Left[i+1]
		}
	}
	return n.Left[len(n.Left)-1]
}

// servedVersion is a version that went live.
type servedVersion struct {
	Live     time.Time `json:"live"`
	Sum      string    `json:"sum"`                // see [Opener.ContentSum]
	Options  string    `json:"options"`            // see readOptions.sum: read in another way, it is another list
	Accepted bool      `json:"accepted,omitempty"` // somebody has said that it is right
	Forced   bool      `json:"forced,omitempty"`   // else it would have been held for its size
	sizes
}

// servedFile is what the file "served" of a list's directory holds.
type servedFile struct {
	Served []servedVersion `json:"served"` // the oldest first
}

const (
	// comparedVersions is with how many versions an update is compared: those that went
	// live last.
	comparedVersions = 5

	// settledAge is how long ago a version went live that counts as right.
	settledAge = 24 * time.Hour

	// servedPause is the least time between versions that are remembered, besides the
	// last ones: a list may change every minute. maxServed bounds them.
	servedPause = time.Hour
	maxServed   = 64
)

// settled reports whether a version counts as right: it was accepted, or nobody has replaced the
// list on the day when it went live.
func (v *servedVersion) settled(now time.Time) bool {
	return v.Accepted || now.Sub(v.Live) >= settledAge
}

// addServed returns the versions with one more.
func addServed(served []servedVersion, v servedVersion) []servedVersion {
	served = slices.Clone(served)
	if last := len(served) - 1; last >= 0 && served[last].Sum == v.Sum && served[last].Options == v.Options {
		// It was read again: entries have expired.
		v.Live, v.Accepted = served[last].Live, v.Accepted || served[last].Accepted
		v.Forced = v.Forced || served[last].Forced
		served[last] = v
		return served
	}
	served = append(served, v)
	settled := 0
	kept := served[:0:0]
	for i, s := range slices.Backward(served) {
		switch {
		case len(served)-i <= comparedVersions:
		case s.settled(v.Live):
			if settled++; settled > comparedVersions {
				continue
			}
		case i > 0 && s.Live.Sub(served[i-1].Live) < servedPause:
			continue
		}
		kept = append(kept, s)
	}
	kept = kept[:min(len(kept), maxServed)]
	slices.Reverse(kept)
	return kept
}

// noteServed remembers the version that serves, so that updates are compared with it.
func (s *source) noteServed() error {
	v := s.live.good
	if v == nil || v == s.noted {
		return nil
	}
	s.noted = v
	sum := sumOf(v.stamps)
	if sum == "" {
		return nil
	}
	version := servedVersion{time.Now().UTC(), sum, s.options.sum(s.list), v.accepted, v.forced, v.sizes()}
	if last := len(s.served) - 1; last >= 0 && s.served[last].Sum == sum && s.served[last].Options == version.Options && !v.fresh {
		return nil // a start has found it
	}
	s.served = addServed(s.served, version)
	if !s.state.writable() {
		return nil
	}
	text, err := json.Marshal(servedFile{s.served})
	if err == nil {
		err = s.state.tree.MakeDirs(ListName(s.list.Name))
	}
	if err == nil {
		err = s.state.tree.WriteFile(path.Join(ListName(s.list.Name), servedName), s.state.work, newPattern, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keeping the sizes of list %q: %w", s.list.Name, err)
	}
	return nil
}

// servedBefore returns the versions of a list that went live. A damaged file counts as none:
// an update is compared with the version that serves then.
func (s *state) servedBefore(list string) []servedVersion {
	if !s.keeping() {
		return nil
	}
	text, err := s.tree.ReadFile(path.Join(ListName(list), servedName), maxSmall)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !s.readOnly { // else a tool, which may not read it
			s.say(err)
		}
		return nil
	}
	var file servedFile
	if err := json.Unmarshal(text, &file); err != nil {
		s.log.Debug("the sizes of earlier versions are not known", "list", list, "error", err)
		return nil
	}
	return file.Served
}

// comparable returns the versions that an update can be compared with, the newest last: those
// that were read in the same way. The one that serves is among them.
func (s *source) comparable(now time.Time) []servedVersion {
	options := s.options.sum(s.list)
	served := slices.DeleteFunc(slices.Clone(s.served), func(v servedVersion) bool { return v.Options != options })
	good := s.live.good
	if good == nil {
		return nil // what was stored is of another list
	}
	last := len(served) - 1
	if sum := sumOf(good.stamps); last < 0 || served[last].Sum != sum {
		served = append(served, servedVersion{Live: now, Sum: sum, Options: options, sizes: good.sizes()})
		last++
	}
	served[last].sizes = good.sizes()
	if good.stale {
		clear(served[last].Left[1:]) // which the other program may not have counted
	}
	// What would have gone by itself does not count.
	served[last].Left[0] = max(0, served[last].Left[0]-good.over(now))
	return served
}
