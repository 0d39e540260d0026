// Package doortest has lists for the tests of doors.
package doortest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// Checker judges by a Set. It cannot ask the lists about senders at broken.example.
type Checker struct {
	Prover func() judge.Prover // of a message; may be nil
	set    *blocklist.Set
}

// New returns a Checker of lists. Each has a name, and its text is in Entries.
func New(lists ...List) (Checker, error) {
	dir, err := os.MkdirTemp("", "doortest")
	if err != nil {
		return Checker{}, err
	}
	defer os.RemoveAll(dir)
	var c store.Config
	for _, l := range lists {
		path := filepath.Join(dir, l.Name)
		err = errors.Join(err, os.WriteFile(path, []byte(l.Entries), 0o600))
		l.List.Name, l.List.Paths = l.Name, []string{path}
		c.Lists = append(c.Lists, l.List)
	}
	if err != nil {
		return Checker{}, err
	}
	set, _, err := store.Build(context.Background(), c)
	return Checker{set: set}, err
}

// List is a list and its text.
type List struct {
	Name, Entries string
	store.List
}

// Dropped is the list whose senders' mail is dropped.
var Dropped = List{Name: "dropped", Entries: "discard.example\n", List: store.List{Action: verdict.Discard}}

// Set returns the Set.
func (c Checker) Set() *blocklist.Set { return c.set }

// Judge implements verdict.Checker.
func (c Checker) Judge() verdict.Judge {
	checker := judge.Checker{Store: c, Unwrap: sender.SRS | sender.BATV, Prover: c.Prover}
	return broken{checker.Judge().(inner)}
}

type inner interface {
	verdict.RecipientJudge
	verdict.ProofJudge
}

type broken struct{ inner }

func (b broken) Judge(ctx context.Context, m *verdict.Message, q verdict.Query) (verdict.Verdict, error) {
	if strings.HasSuffix(q.Address, "@broken.example") {
		return verdict.Verdict{}, fmt.Errorf("%w: the disk is gone", verdict.ErrNoAnswer)
	}
	return b.inner.Judge(ctx, m, q)
}
