package console

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/segment"
	"spamgate/blocklist/sender"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/listfiles"
)

// maxFound bounds the entries that a search shows.
const maxFound = 200

// searchTime bounds how long a search reads through an index: what it has found by then is
// shown.
const searchTime = 40 * time.Millisecond

// wantedEntries are the entries that somebody looks for: those that match an address, or all of
// a domain with those below it. The zero value is any entry.
type wantedEntries struct {
	keys   []string
	domain string
}

// parseWanted parses what was typed. The error is for users.
func parseWanted(typed string, l *config.List) (w wantedEntries, err error) {
	if typed == "" {
		return w, nil
	}
	if a, err := sender.Parse(typed); err == nil && (a.IsNull() || a.Local() != "") && !strings.ContainsAny(typed, "*!") {
		return wantedEntries{keys: listfile.Matching(a)}, nil
	}
	e, err := listfile.ParseEntry(typed, listfile.Options{AllowPublicSuffix: true, Exact: l.Match == "exact"})
	if err != nil {
		var p listfile.Problem
		if errors.As(err, &p) && p.Hint != "" {
			return w, invalid(sentence(errors.New(p.What)) + " " + sentence(errors.New(p.Hint)))
		}
		return w, invalid(sentence(err))
	}
	w.keys = append([]string{e.Key}, listfile.Covering(e.Key, e.Kind)...)
	w.domain = listfiles.DomainOf(e)
	return w, nil
}

// any reports whether any entry is wanted.
func (w *wantedEntries) any() bool { return w.keys == nil }

// has reports whether the entry of a key is wanted.
func (w *wantedEntries) has(key string) bool {
	return w.any() || slices.Contains(w.keys, key) || w.domain != "" && listedit.Below(key, w.domain)
}

// listSearch looks into the index of a list.
type listSearch struct {
	index             *segment.Segment
	key               *segment.Key
	sender, recipient wantedEntries
	perRecipient      bool
	found             []segment.Record
	incomplete        bool
}

// run finds the entries. Those that have one of the keys come first, the most specific before
// the others.
func (s *listSearch) run(ctx context.Context) error {
	for _, key := range s.exact() {
		if err := s.look(key); err != nil {
			return err
		}
	}
	text := s.text()
	if text == "" {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, searchTime)
	defer stop()
	return s.scan(ctx, text)
}

// exact returns the keys in the index that can be told without reading through it.
func (s *listSearch) exact() (keys []string) {
	if !s.perRecipient {
		return s.sender.keys
	}
	for _, recipient := range s.recipient.keys {
		for _, key := range s.sender.keys {
			keys = append(keys, string(segment.AppendFor(nil, recipient, key)))
		}
	}
	return keys
}

// text returns what all other wanted keys contain; "" if there are no others.
func (s *listSearch) text() string {
	switch {
	case s.sender.domain != "":
		return s.sender.domain
	case s.perRecipient && s.recipient.domain != "":
		return s.recipient.domain
	case s.perRecipient && s.sender.any() != s.recipient.any():
		return "\t"
	}
	return ""
}

// look adds the entry of a key.
func (s *listSearch) look(key string) error {
	r, ok, err := s.index.Lookup(s.key.Hash([]byte(key)), []byte(key))
	if ok && len(s.found) < maxFound {
		s.found = append(s.found, r)
	}
	return err
}

// scan adds the wanted entries whose keys contain a text.
func (s *listSearch) scan(ctx context.Context, text string) error {
	known := map[string]bool{}
	for _, r := range s.found {
		known[r.Indexed()] = true
	}
	const parts = 256
	const width = ^uint64(0)/parts + 1
	for i := range uint64(parts) {
		if s.incomplete = ctx.Err() != nil || len(s.found) == maxFound; s.incomplete {
			return nil
		}
		var keys []string
		err := s.index.ScanFor(width*i, width*i+(width-1), text, func(key []byte) bool {
			if k := string(key); s.wants(k) && !known[k] {
				keys = append(keys, k)
			}
			return len(keys) < maxFound
		})
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := s.look(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// wants reports whether the entry with a key in the index is wanted.
func (s *listSearch) wants(key string) bool {
	if !s.perRecipient {
		return s.sender.has(key)
	}
	recipient, name, _ := strings.Cut(key, "\t")
	return s.recipient.has(recipient) && s.sender.has(name)
}

// searchList adds the entries of the version that serves which match what is wanted.
func (x *exchange) searchList(v *listView) (err error) {
	index, key, files, ok := x.console.Set().Index(v.Name)
	if !ok {
		return nil // it has no entries
	}
	s := &listSearch{index: index, key: key, perRecipient: v.Facts.PerRecipient}
	if s.sender, err = parseWanted(v.Query, v.Facts); err == nil && s.perRecipient {
		s.recipient, err = parseWanted(v.For, v.Facts)
	}
	var f failure
	if errors.As(err, &f) {
		v.Problem, x.status = f.text, f.status
		return nil
	}
	if err := s.run(x.r.Context()); err != nil {
		return err
	}
	v.Incomplete = s.incomplete
	for _, r := range s.found {
		path := ""
		if r.File < len(files) {
			path = files[r.File]
		}
		e := listfile.Entry{
			Key: r.Key, Kind: sender.Kind(r.Kind), For: r.For, Exception: r.Exception, Defer: r.Defer,
			Until: r.Until, Line: r.Line, Reason: r.Reason, Note: r.Note,
		}
		v.Rows = append(v.Rows, x.entryRow(v, listfiles.NewEntryInfo(v.Name, path, e), e))
	}
	return nil
}
