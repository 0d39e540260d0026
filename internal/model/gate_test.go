package model

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/blocklist"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// gate is what judges by the lists of a world.
type gate struct {
	dir    string
	proofs *proofs
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// served is a Set that does not change.
type served struct{ set *blocklist.Set }

func (s served) Set() *blocklist.Set { return s.set }

var actionsOf = map[action]verdict.Action{
	accept: verdict.Accept, tag: verdict.Tag, discard: verdict.Discard, deferred: verdict.Defer, reject: verdict.Reject, monitor: verdict.Monitor,
}

// config writes the lists of a world into files.
func (g *gate) config(t testing.TB, w *world) store.Config {
	c := store.Config{Filter: blocklist.Filter{Kind: blocklist.KindSized, FPR: 0.1}, Monitor: w.monitor}
	for i := range w.lists {
		l := &w.lists[i]
		path := filepath.Join(g.dir, l.name)
		must(t, os.WriteFile(path, []byte(strings.Join(l.lines, "\n")+"\n"), 0o600))
		sl := store.List{
			Name: l.name, Paths: []string{path}, Action: actionsOf[l.action], HeaderAction: actionsOf[l.headerAction],
			Exact: l.exact, Override: l.override, PerRecipient: l.perRecipient,
		}
		if l.allow {
			sl.Type = blocklist.Allow
		}
		if l.envelope {
			sl.Stages |= verdict.Envelope
		}
		if l.header {
			sl.Stages |= verdict.Header
		}
		if l.spf {
			sl.ProvenBy |= verdict.SPF
		}
		if l.dkim {
			sl.ProvenBy |= verdict.DKIM
		}
		c.Lists = append(c.Lists, sl)
	}
	return c
}
