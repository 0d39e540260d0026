package hashattack

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// attempts is how often the search builds a tower before it gives up. The first one
// nearly always succeeds, and with a single final state every other.
const attempts = 16

// teams are the hashes that share a name. A team's third may have 32 bits of state;
// its second has a step with one inverse. BP follows from the name's end, and ELF
// is PJW.
var teams = [][3]string{
	{"PJW", "FNV", "AP"},
	{"BKDR", "SDBM", "JS"},
	{"RS", "DJB", "DEK"},
}

// Options tells what to search for.
type Options struct {
	// Target is the domain to make a false positive, in any form that a list
	// accepts.
	Target string

	// Seed makes the search repeatable: the same target and seed give the same
	// names on any number of processors.
	Seed uint64

	// Progress, if not nil, is called after each step, with done from 1 to at most
	// total. There are no concurrent calls.
	Progress func(done, total int)
}

// Search searches for names that, once listed, make the target a false positive of
// the classic filter. It takes some seconds of each of three goroutines, and up to
// 100 MiB for each.
//
// If ctx ends, or a part of the search fails, it returns the names so far and the
// error.
func Search(ctx context.Context, o Options) (*Result, error) {
	target, err := readTarget(o.Target)
	if err != nil {
		return nil, err
	}
	names, work, err := searchTeams(ctx, target, o)
	r, judgeErr := Judge(target, names)
	if judgeErr != nil {
		return nil, judgeErr
	}
	r.Seed, r.Work = o.Seed, work
	return r, err
}

// searchTeams searches for a name for each team, in parallel. It returns the names
// in the teams' order, and an error if one is missing.
func searchTeams(ctx context.Context, target string, o Options) (names []string, work uint64, err error) {
	names = make([]string, len(teams))
	errs := make([]error, len(teams))
	towers := make([]*tower, len(teams))
	step := stepper(o.Progress, len(teams)*towerSteps)
	letters := map[int]*pool{3: words(3), 4: words(4)}
	var running sync.WaitGroup
	for i, team := range teams {
		towers[i] = newTower(team, target, letters, o.Seed)
		towers[i].step = step
		running.Go(func() { names[i], errs[i] = towers[i].search(ctx) })
	}
	running.Wait()
	for _, t := range towers {
		work += t.work
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	if err := ctx.Err(); err != nil {
		return names, work, fmt.Errorf("interrupted: %w", err)
	}
	return names, work, errors.Join(errs...)
}

// stepper returns a function that counts a step for a Progress function, which may
// be nil.
func stepper(progress func(done, total int), total int) func() {
	if progress == nil {
		return func() {}
	}
	var lock sync.Mutex
	done := 0
	return func() {
		lock.Lock()
		defer lock.Unlock()
		if done < total { // further attempts have no steps of their own
			done++
			progress(done, total)
		}
	}
}

// newTower returns the search for a team's name. Its random numbers depend on team,
// target and seed alone.
func newTower(team [3]string, target string, letters map[int]*pool, seed uint64) *tower {
	all := chains()
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %s", strings.Join(team[:], ","), target)
	t := &tower{
		target: target,
		suffix: ending(target),
		words:  letters,
		random: rand.New(rand.NewPCG(seed, h.Sum64())),
		step:   func() {},
	}
	for i, name := range team {
		t.hashes[i] = all[name]
	}
	t.between = t.chooseBetween()
	return t
}

// search builds towers until one gives a name.
func (t *tower) search(ctx context.Context) (string, error) {
	for range attempts {
		name, err := t.build(ctx)
		if err != nil {
			return "", err
		}
		if name != "" && checkName(name, t.target) == nil {
			return name, nil
		}
	}
	return "", fmt.Errorf("no name with the target's %s, %s and %s in %d attempts: try another seed",
		t.hashes[0].name, t.hashes[1].name, t.hashes[2].name, attempts)
}
