package look

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"spamgate/blocklist/listfile"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/listcompare"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// superfluousEntry is an entry that can be removed.
type superfluousEntry struct {
	listfiles.EntryInfo
	Expired bool   `json:"expired,omitempty"`
	By      string `json:"covered_by,omitempty"`
	ByList  string `json:"covered_by_list,omitempty"`

	by listcompare.Cover
}

// why returns why an entry is superfluous.
func (e *superfluousEntry) why() string {
	switch {
	case e.Expired:
		return "expired " + e.Until
	case e.By == e.Entry && e.ByList == e.List:
		return "repeated"
	case e.ByList == e.List:
		return "covered by " + e.By
	}
	return fmt.Sprintf("covered by %s of list %s", e.By, e.ByList)
}

// superfluousFile is a file that has superfluous entries.
type superfluousFile struct {
	list    *listfiles.List
	path    string
	sum     string // the SHA-256 of what was read
	entries []superfluousEntry
}

// change removes the entries from the files, and has the gate read the changed lists. The answer
// is of the first that is not live, if there is one.
func (c *comparison) change(files []*superfluousFile) error {
	var changed []string
	for _, f := range files {
		if err := c.changeFile(f); err != nil {
			return c.ChangedBefore(err, changed)
		}
		changed = append(changed, f.path)
	}
	for _, f := range files {
		if c.report.Gate = c.Gate().Rescan(c, f.list.Name); c.report.Gate.Error != "" {
			break
		}
	}
	return nil
}

// checkLive returns an error unless what is on disk is what serves: decisions could change
// otherwise.
func (c *comparison) checkLive() error {
	status, _, err := c.Status()
	if err != nil {
		return err
	}
	for _, l := range status.Lists {
		if l.Error != "" {
			return fmt.Errorf("what list %s has on disk does not serve: %s", l.Name, l.Error)
		}
	}
	return nil
}

// superfluous finds the superfluous entries, the last list's first: of equal entries of several lists
// the first one's stays, which is the one that replies name.
func (c *comparison) superfluous() (files []*superfluousFile, err error) {
	var search []*listfiles.List
	for _, l := range c.lists {
		packed, err := hasPacked(l)
		switch {
		case err != nil:
			return nil, err
		case c.List != "" && l.Name != c.List:
		case l.PerRecipient && !c.expired:
			c.skip("list " + l.Name + " is by recipient; with --expired those that have ended are superfluous")
		case l.URL != "":
			c.skip("list " + l.Name + " comes from a URL")
		case packed != "":
			c.skip(fmt.Sprintf("list %s: %s is packed", l.Name, term.ShortPath(packed)))
		case !l.ReadsPlain():
			c.skip(fmt.Sprintf("list %s has the format %q, which is read and never written", l.Name, l.Format))
		default:
			search = append(search, l)
		}
	}
	scan := listfiles.NewScan(c, search, c.Stderr)
	defer scan.Bar.Finish()
	for i, l := range slices.Backward(c.lists) {
		if !slices.Contains(search, l) {
			continue
		}
		for n, path := range l.Paths {
			f, err := c.findIn(scan, i, n, path)
			if err != nil {
				return nil, err
			}
			if len(f.entries) > 0 {
				files = append(files, f)
			}
		}
	}
	for _, f := range files {
		for i := range f.entries {
			if e := &f.entries[i]; !e.Expired {
				by := c.finder.Stays(e.by)
				e.By, e.ByList = by.Key, by.List.Name
			}
		}
	}
	slices.Reverse(files) // as the configuration has the lists
	return files, nil
}

// hasPacked returns the first of the list's files that is packed; "" if none is.
func hasPacked(l *listfiles.List) (string, error) {
	for _, path := range l.Paths {
		f, err := setup.Opener(l.List).Open(path)
		if err != nil {
			return "", err
		}
		content, packed, err := listfile.Unpack(f, l.MaxBytes)
		if err == nil {
			err = content.Close()
		}
		f.Close()
		if packed || err != nil {
			return path, err
		}
	}
	return "", nil
}

func (c *comparison) skip(what string) { c.report.Skipped = append(c.report.Skipped, what) }

// findIn finds the superfluous entries in the n-th file of the i-th list.
func (c *comparison) findIn(scan *listfiles.Scan, i, n int, path string) (*superfluousFile, error) {
	l := c.lists[i]
	f := &superfluousFile{list: l, path: path}
	var err error
	if f.sum, err = session.SumOfFile(l, path); err != nil {
		return nil, err
	}
	_, err = scan.File(setup.Opener(l.List), path, l.Options, func(e listfile.Entry) error {
		superfluous := superfluousEntry{EntryInfo: listfiles.NewEntryInfo(l.Name, path, e)}
		if (listfiles.Located{Entry: e}).Over() {
			if superfluous.Expired = c.expired; c.expired {
				f.entries = append(f.entries, superfluous)
			}
			return nil
		}
		if l.PerRecipient {
			return nil
		}
		by, ok, err := c.finder.Remove(i, n, e)
		if ok {
			superfluous.by = by
			f.entries = append(f.entries, superfluous)
		}
		return err
	}, nil)
	return f, err
}

// changeFile removes the entries from one file.
func (c *comparison) changeFile(f *superfluousFile) error {
	e := c.Edit(f.list, f.path)
	splice := listedit.Splice{Remove: map[int]bool{}, Empty: listedit.NoEntries}
	for _, superfluousEntry := range f.entries {
		splice.Remove[superfluousEntry.Line] = true
	}
	_, err := e.Rewrite(c, func(old io.ReadSeeker, w io.Writer) error {
		e.Record.Each = nil
		for i := range f.entries {
			e.Record.Each = append(e.Record.Each, fmt.Sprintf("removed %s, %s", f.entries[i].Text(), f.entries[i].why()))
		}
		if sum, err := session.HexSum(old); err != nil || sum != f.sum {
			return errors.Join(err, listedit.ErrChanged)
		}
		if _, err := old.Seek(0, io.SeekStart); err != nil {
			return err
		}
		_, err := splice.Copy(w, old)
		return err
	})
	return err
}
