package hashlab

import (
	"context"
	"fmt"
	"math/bits"
	"runtime"

	"spamgate/blocklist/bloom"
)

// Options say what to compare. The zero value is the default run.
type Options struct {
	// Families are names as [hashfamily.ParseSpec] reads them; none means the
	// laboratory's own choice. The controls are always there.
	Families []string

	// Corpora replace the default ones. Each has at least [MinKeys] keys, and a
	// name of its own.
	Corpora []*Corpus

	// Seed is where every random choice begins.
	Seed uint64

	// Full measures what the docs show: minutes instead of seconds.
	Full bool

	// Version and Flags go to the manifest.
	Version string
	Flags   []string

	// Progress, where not nil, is told now and then how much of the work is
	// done, from 0 to 1, and what comes next. It is called from one goroutine
	// at a time.
	Progress func(done float64, what string)
}

// Run measures. When ctx ends it stops soon, and returns what is done, marked
// [Report.Interrupted], without an error. An error is about the options: a
// family or a corpus that can't be measured.
func Run(ctx context.Context, o Options) (*Report, error) {
	families, err := choose(o.Families)
	if err != nil {
		return nil, err
	}
	subjects, err := groups(families)
	if err != nil {
		return nil, err
	}
	if err := checkCorpora(o.Corpora); err != nil {
		return nil, err
	}
	l := &lab{
		options: o, families: families, groups: subjects,
		report: &Report{
			Manifest: newManifest(o),
			FPR:      []FPRRow{}, Messages: []MessageRow{}, PassRates: []PassRow{}, Collisions: []Collision{},
			Uniformity: []Uniformity{}, Avalanche: []Avalanche{}, Agreement: []Agreement{}, Speed: []SpeedRow{}, Summary: []Finding{},
		},
	}
	err = l.do(ctx, l.steps())
	if ctx.Err() != nil {
		l.report.Interrupted = true
	} else if err != nil {
		return nil, err
	}
	correctUniformity(l.report.Uniformity)
	return l.report, nil
}

// checkCorpora says what is wrong with the caller's corpora.
func checkCorpora(corpora []*Corpus) error {
	names := make(map[string]bool)
	for _, c := range corpora {
		if err := c.check(); err != nil {
			return err
		}
		if names[c.Name] {
			return fmt.Errorf("corpus %s is given twice: give each once", c.Name)
		}
		names[c.Name] = true
	}
	return nil
}

// lab is one run.
type lab struct {
	options  Options
	families []choice
	groups   []group
	report   *Report

	corpus *Corpus // the one whose turn it is
	place  *place  // likewise
	tell   teller  // of the step that is being done
}

// step is a piece of work that is worth telling about.
type step struct {
	what string
	cost float64 // nanoseconds of one core, roughly: what the progress goes by
	do   func(ctx context.Context) error
}

// teller is told how much of a long step is done, from 0 to 1. Nil is nobody.
type teller func(part float64)

// part tells that done of so many pieces are done.
func (t teller) part(done, of int) {
	if t != nil {
		t(float64(done) / float64(of))
	}
}

// do does the steps in order, until one fails or ctx ends.
func (l *lab) do(ctx context.Context, steps []step) error {
	total, done := 0.0, 0.0
	for _, s := range steps {
		total += s.cost
	}
	for _, s := range steps {
		if l.options.Progress != nil {
			l.tell = func(part float64) { l.options.Progress((done+part*s.cost)/total, s.what) }
		}
		l.tell.part(0, 1)
		if err := s.do(ctx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		done += s.cost
	}
	if l.options.Progress != nil {
		l.options.Progress(1, "done")
	}
	return nil
}

// steps is all that is to be done.
func (l *lab) steps() []step {
	o := l.options
	sources := given(o.Corpora)
	if len(sources) == 0 {
		n := generatedKeys
		if o.Full {
			n = generatedKeysFull
		}
		sources = defaultSources(o.Seed, n)
	}
	var steps []step
	for _, source := range sources {
		steps = append(steps, l.corpusSteps(source)...)
	}
	if o.Full {
		steps = append(steps, l.fullSizeSteps()...)
	}
	return append(steps, step{"speed", l.speedCost(), func(ctx context.Context) error {
		families, err := l.makeAll(bloom.ClassicBits)
		if err != nil {
			return err
		}
		plan := speedPlanOf(o.Full)
		plan.tell = l.tell
		rows, gigahertz := measureSpeed(ctx, l.hashes(), families, plan)
		l.report.Speed = append(l.report.Speed, rows...)
		l.report.Manifest.ClockGHz = gigahertz
		return nil
	}})
}

// corpusSteps is what is done with a corpus.
func (l *lab) corpusSteps(source source) []step {
	steps := []step{{"making the corpus " + source.name, 300 * float64(source.keys), func(ctx context.Context) (err error) {
		l.corpus, l.place = nil, nil // so that only one is in memory at a time
		if l.corpus, err = source.make(ctx); err == nil {
			l.report.Manifest.Corpora = append(l.report.Manifest.Corpora, l.corpus.info())
		}
		return err
	}}}
	for _, g := range l.groups {
		all := sizes(source.keys, g.k, l.options.Full)
		for i, m := range all {
			s := newShape(source.keys, m, g.k, l.options.Full)
			steps = append(steps, l.placeSteps(source.name, g, s, i == 0 && g.k > 1, i == len(all)-1 && g.k > 1)...)
		}
	}
	return append(steps, l.hashSteps(source)...)
}

// placeSteps is the false positive rates of a group in one place, with messages
// and pass rates where told.
func (l *lab) placeSteps(corpus string, g group, s shape, messages, passes bool) []step {
	what := fmt.Sprintf("%s, k = %d, 2^%d bits: ", corpus, g.k, bits.Len64(s.m)-1)
	steps := []step{{what + "splits", 6 * float64(s.splits*s.pool), func(ctx context.Context) (err error) {
		l.place = nil // so that only one is in memory at a time
		if l.place, err = newPlace(ctx, l.corpus, s, l.options.Seed); err == nil && messages {
			l.place.messages = newMessages(l.place, l.messageCount())
		}
		return err
	}}}
	for _, subject := range g.subjects {
		steps = append(steps, step{what + subject.Name, s.cost(subject.Name == Ideal), func(ctx context.Context) error {
			p := l.place
			p.passes = passes && subject.Kind != KindHash
			x, err := p.measure(ctx, subject)
			if err != nil {
				return err
			}
			rows := x.rows(p, subject.Subject)
			l.report.FPR = append(l.report.FPR, rows...)
			l.report.PassRates = append(l.report.PassRates, x.passRows(p, subject.Subject)...)
			if p.messages != nil {
				l.report.Messages = append(l.report.Messages, p.messages.row(p, subject.Subject, x.messages, rows[p.full].Rate.Value))
			}
			return nil
		}})
	}
	return steps
}

// hashSteps is what is looked at in each hash of a corpus, and in each family's
// functions beside each other.
func (l *lab) hashSteps(source source) []step {
	o, r, subjects := l.options, l.report, l.hashes()
	cost := 100 * float64(source.keys*len(subjects))
	return []step{
		{source.name + ": collisions", cost, func(ctx context.Context) error {
			r.Collisions = append(r.Collisions, measureCollisions(ctx, l.corpus, subjects)...)
			return nil
		}},
		{source.name + ": uniformity", cost / 3, func(ctx context.Context) error {
			r.Uniformity = append(r.Uniformity, measureUniformity(ctx, l.corpus, subjects)...)
			return nil
		}},
		{source.name + ": avalanche", 1e7 * float64(len(subjects)), func(ctx context.Context) error {
			r.Avalanche = append(r.Avalanche, measureAvalanche(ctx, l.corpus, subjects, o.Seed, o.Full)...)
			return nil
		}},
		{source.name + ": agreement", cost, func(ctx context.Context) error {
			rows, err := measureAgreement(ctx, l.corpus, l.makers(), o.Seed, o.Full)
			r.Agreement = append(r.Agreement, rows...)
			return err
		}},
	}
}

// speedCost is about how long speed is measured, on one core while the others
// wait.
func (l *lab) speedCost() float64 {
	plan := speedPlanOf(l.options.Full)
	contenders := (len(l.hashes()) + len(l.families) + 2) * len(speedLengths)
	return float64(contenders) * float64(plan.runs+3) * float64(plan.run) * float64(runtime.GOMAXPROCS(0))
}

// messageCount is how many messages are made for a place.
func (l *lab) messageCount() int {
	if l.options.Full {
		return messageCountFull
	}
	return messageCount
}

// fullSizeSteps is the measurement at full size.
func (l *lab) fullSizeSteps() []step {
	z := daemonSize(l.options.Seed)
	keys := float64(fullSizeFilters * z.keys())
	steps := []step{{"full size: addresses", 100 * keys, func(ctx context.Context) error {
		l.corpus, l.place = nil, nil // not needed any more
		z.tell = l.tell
		info, err := z.info(ctx)
		if err == nil {
			l.report.Manifest.Corpora = append(l.report.Manifest.Corpora, info)
		}
		return err
	}}}
	for _, s := range fullSizeSubjects(l.options, l.groups) {
		steps = append(steps, step{fmt.Sprintf("full size: %s, k = %d", s.Name, s.k), keys * float64(100+50*s.k), func(ctx context.Context) error {
			z.tell = l.tell
			rows, err := z.measure(ctx, s)
			l.report.FPR = append(l.report.FPR, rows...)
			return err
		}})
	}
	return steps
}
