package hashlab

import (
	"context"
	"fmt"
	"math/bits"
	"runtime"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// Options tells what to compare. The zero value is the default run.
type Options struct {
	// Families are names for [hashfamily.ParseSpec]; without them Run takes the
	// default families. It always adds the controls.
	Families []string

	// Own are families of the caller's, which are compared with Families, or with the
	// default ones. Hashes are single hashes of the caller's. Without Families there
	// are also FNV-1a and CRC32C.
	Own    []Family
	Hashes []Hash

	// Corpora replace the default ones. Each needs at least [MinKeys] keys and a
	// unique name.
	Corpora []*Corpus

	// Seed determines all random choices.
	Seed uint64

	// Full makes the run longer and more precise, and adds filters of full size.
	Full bool

	// Version and Flags are for the manifest.
	Version string
	Flags   []string

	// Progress, if not nil, is called now and then with the part of the work that
	// is done, from 0 to 1, and the next step. There are no concurrent calls.
	Progress func(done float64, what string)
}

// MaxOwnK is the greatest number of functions of a family of the caller's.
const MaxOwnK = 64

// Family is a family of the caller's.
type Family struct {
	Name string // not that of another family
	K    int    // 1 to MaxOwnK

	// New returns the family over m bits, m from 1 to 2^32. Its methods may be called
	// concurrently.
	New func(m uint64) (hashfamily.Family, error)

	// Fixed is set if the family has indices for the keys of Corpora only: then rates
	// per message and speeds are not measured.
	Fixed bool
}

// Hash is a single hash of the caller's. Values of Sum, which may be called
// concurrently, are below 2^Bits; Bits is 16 to 64.
type Hash struct {
	Name string
	Bits int
	Sum  func(key []byte) uint64
}

// Run measures. If ctx ends it stops soon, and returns the numbers so far, with
// [Report.Interrupted] set and without an error. An error means invalid options: a
// family or a corpus that cannot be measured.
func Run(ctx context.Context, o Options) (*Report, error) {
	families, err := choose(o.Families)
	if err != nil {
		return nil, err
	}
	if families, err = withOwn(families, o.Own); err != nil {
		return nil, err
	}
	others := o.Hashes
	if len(o.Families) == 0 {
		others = append(OtherHashes(), others...)
	}
	var hashes []hashSubject
	for _, h := range others {
		hashes = append(hashes, h.subject())
	}
	subjects, err := groups(families, hashes...)
	if err != nil {
		return nil, err
	}
	if err := checkCorpora(o.Corpora); err != nil {
		return nil, err
	}
	l := &lab{
		options: o, families: families, others: hashes, groups: subjects,
		report: &Report{
			Manifest: newManifest(o),
			FPR:      []FPRRow{}, Equivalence: []Equivalence{}, Messages: []MessageRow{}, PassRates: []PassRow{}, Collisions: []Collision{},
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
	correctAvalanche(l.report.Avalanche)
	l.report.Equivalence = append(l.report.Equivalence, Equivalences(l.report.FPR)...)
	return l.report, nil
}

// checkCorpora returns an error if the caller's corpora cannot be measured.
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
	others   []hashSubject // that no family uses
	groups   []group
	report   *Report

	corpus     *Corpus      // the current one
	experiment *experiment  // the current one
	progress   progressFunc // of the current step
}

// step is a part of the work with a name for the progress.
type step struct {
	what string
	cost float64 // for the progress: nanoseconds of one core, roughly
	do   func(ctx context.Context) error
}

// progressFunc is called with the part of a long step that is done, from 0 to 1. It
// may be nil.
type progressFunc func(part float64)

// part reports that so many of the pieces are done.
func (f progressFunc) part(done, total int) {
	if f != nil {
		f(float64(done) / float64(total))
	}
}

// do runs the steps in order, until one fails or ctx ends.
func (l *lab) do(ctx context.Context, steps []step) error {
	total, done := 0.0, 0.0
	for _, s := range steps {
		total += s.cost
	}
	for _, s := range steps {
		if l.options.Progress != nil {
			l.progress = func(part float64) { l.options.Progress((done+part*s.cost)/total, s.what) }
		}
		l.progress.part(0, 1)
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

// steps returns all steps of the run.
func (l *lab) steps() []step {
	o := l.options
	sources := fixedSources(o.Corpora)
	if len(sources) == 0 {
		n, patterns := generatedKeys, keysetKeys
		if o.Full {
			n, patterns = generatedKeysFull, generatedKeysFull
		}
		sources = append(defaultSources(o.Seed, n), keysetSources(o.Seed, patterns)...)
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
		plan.progress = l.progress
		rows, gigahertz := measureSpeed(ctx, l.hashes(), families, plan)
		l.report.Speed = append(l.report.Speed, rows...)
		l.report.Manifest.ClockGHz = gigahertz
		return nil
	}})
}

// corpusSteps returns the steps for a corpus.
func (l *lab) corpusSteps(source source) []step {
	steps := []step{{"making the corpus " + source.name, 300 * float64(source.keys), func(ctx context.Context) (err error) {
		l.corpus, l.experiment = nil, nil // so that only one is in memory at a time
		if l.corpus, err = source.make(ctx); err == nil {
			l.report.Manifest.Corpora = append(l.report.Manifest.Corpora, l.corpus.info())
		}
		return err
	}}}
	for _, g := range l.groups {
		all := sizes(source.keys, g.k, l.options.Full)
		for i, m := range all {
			s := newShape(source.keys, m, g.k, l.options.Full)
			steps = append(steps, l.experimentSteps(source.name, g, s, i == 0 && g.k > 1, i == len(all)-1 && g.k > 1)...)
		}
	}
	return append(steps, l.hashSteps(source)...)
}

// experimentSteps returns the steps for the false positive rates of a group in one
// experiment, and if wanted for messages and pass rates.
func (l *lab) experimentSteps(corpus string, g group, s shape, messages, passes bool) []step {
	what := fmt.Sprintf("%s, k = %d, 2^%d bits: ", corpus, g.k, bits.Len64(s.m)-1)
	steps := []step{{what + "splits", 6 * float64(s.splits*s.pool), func(ctx context.Context) (err error) {
		l.experiment = nil // so that only one is in memory at a time
		if l.experiment, err = newExperiment(ctx, l.corpus, s, l.options.Seed); err == nil && messages {
			l.experiment.messages = newMessages(l.experiment, l.messageCount())
		}
		return err
	}}}
	for _, subject := range g.subjects {
		steps = append(steps, step{what + subject.Name, s.cost(subject.Name == Ideal), func(ctx context.Context) error {
			p := l.experiment
			if subject.fixed {
				alone := *p
				alone.messages = nil // whose keys are not in the corpus
				p = &alone
			}
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

// hashSteps returns the steps for single hashes over a corpus, and for the
// agreement of each family's functions.
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

// speedCost returns about how long measuring speed takes, on one core while the
// others wait.
func (l *lab) speedCost() float64 {
	plan := speedPlanOf(l.options.Full)
	contenders := (len(l.hashes()) + len(l.families) + 2) * len(speedLengths)
	return float64(contenders) * float64(plan.runs+3) * float64(plan.run) * float64(runtime.GOMAXPROCS(0))
}

// messageCount returns how many messages are made for an experiment.
func (l *lab) messageCount() int {
	if l.options.Full {
		return messageCountFull
	}
	return messageCount
}

// fullSizeSteps returns the steps of the measurement at full size.
func (l *lab) fullSizeSteps() []step {
	z := daemonSize(l.options.Seed)
	keys := float64(fullSizeFilters * z.keys())
	steps := []step{{"full size: addresses", 100 * keys, func(ctx context.Context) error {
		l.corpus, l.experiment = nil, nil // not needed any more
		z.progress = l.progress
		info, err := z.info(ctx)
		if err == nil {
			l.report.Manifest.Corpora = append(l.report.Manifest.Corpora, info)
		}
		return err
	}}}
	for _, s := range fullSizeSubjects(l.options, l.groups) {
		steps = append(steps, step{fmt.Sprintf("full size: %s, k = %d", s.Name, s.k), keys * float64(100+50*s.k), func(ctx context.Context) error {
			z.progress = l.progress
			rows, err := z.measure(ctx, s)
			l.report.FPR = append(l.report.FPR, rows...)
			return err
		}})
	}
	return steps
}
