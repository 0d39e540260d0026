package session

import (
	"context"
	"errors"
	"slices"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/hits"
	"spamgate/internal/admin"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/recipients"
	"spamgate/internal/report"
	"spamgate/internal/setup"
)

// Read reads the lists as a start would, or only some of them, and writes nothing.
func (s *Session) Read(only ...config.List) (*blocklist.Set, []blocklist.ListStats, error) {
	c := *s.Config
	if only != nil {
		c.Lists = only
	}
	b, err := setup.BlocklistConfig(&c, nil)
	if err != nil {
		return nil, nil, err
	}
	b.ReadOnly = true
	return local.BuildSet(s, b, s.Stderr)
}

// Status asks the running gate for its status. If none runs, it reads the lists, or only some of
// them, and returns their statistics as well.
func (run *Session) Status(only ...config.List) (s admin.Status, read []blocklist.ListStats, err error) {
	if client := run.Gate().Client; client != nil {
		s, err = admin.Call(run, client, admin.OpStatus, admin.None{})
		return s, nil, err
	}
	c := *run.Config
	if only != nil {
		c.Lists = only
	}
	set, lists, err := run.Read(only...)
	if run.Err() != nil {
		return s, nil, context.Cause(run)
	}
	if set == nil && len(lists) == 0 {
		return s, nil, err
	}
	stats := blocklist.SetStats{Lists: lists} // of lists that cannot be used: what is wrong stands there
	if set != nil {
		if err := set.Probe(run, 0); err != nil {
			return s, nil, err
		}
		stats = set.Stats()
	}
	s = report.Status(&c, stats)
	s.From = admin.FromDisk
	report.AddFetched(&c, &s)
	files, err := setup.ReadRecipients(&c)
	if err != nil {
		return s, nil, err
	}
	s.Recipients = report.Recipients(files)
	if err := run.Gate().Err; err != nil {
		s.Unasked = err.Error()
	}
	if set != nil {
		addHits(&c, set, &s)
	}
	return s, stats.Lists, nil
}

// addHits adds the hits of today that a gate has stored.
func addHits(c *config.Config, set *blocklist.Set, s *admin.Status) {
	key, ok := report.HitsKey(set)
	if !ok {
		return
	}
	for i := range s.Lists {
		kept, err := hits.Read(c.State.Dir, report.HitsName(s.Lists[i].Name), key)
		if err == nil {
			n := kept.On(hits.DayOf(time.Now()))
			s.Lists[i].HitsToday = &n
		}
	}
}

// OnlyList returns the list of a name. A gate may lack a list that was added to the
// configuration after its last reload.
func OnlyList(s admin.Status, name string) ([]admin.List, error) {
	for _, l := range s.Lists {
		if l.Name == name {
			return []admin.List{l}, nil
		}
	}
	return nil, errors.New(local.NoListYet(name, s.PID))
}

// IsRecipientFile reports whether a name is that of a file with recipients.
func IsRecipientFile(c *config.Config, name string) bool {
	return slices.ContainsFunc(setup.RecipientFiles(c), func(s recipients.Spec) bool { return s.Name() == name })
}

// Only leaves the list, or the file with recipients, of a name in a status.
func Only(s *admin.Status, c *config.Config, name string) (err error) {
	if !IsRecipientFile(c, name) {
		s.Recipients = nil
		s.Lists, err = OnlyList(*s, name)
		return err
	}
	s.Lists = []admin.List{}
	s.Recipients = slices.DeleteFunc(s.Recipients, func(r admin.RecipientFile) bool { return r.Name != name })
	if len(s.Recipients) == 0 {
		return errors.New(local.NoListYet(name, s.PID))
	}
	return nil
}
