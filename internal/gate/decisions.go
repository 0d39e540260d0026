package gate

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"spamgate/blocklist/verdict"
	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/decisions"
	"spamgate/internal/report"
	"spamgate/internal/setup"
)

// history is the history of decisions. It implements smtpfilter.History for the doors, and
// admin.History for those who search it.
type history struct {
	dir    string
	log    *slog.Logger
	reader *decisions.Reader

	recorder atomic.Pointer[decisions.Recorder] // nil if there is no history, or it cannot be opened

	mu     sync.Mutex
	config config.Decisions // in use
	fault  string           // why it could not be opened

	begun   bool        // the gate has opened its listeners
	off     time.Time   // since when nothing is kept; zero: it is, or begun is false
	cleaner *time.Timer // removes what was kept
}

// openHistory opens the history, which keeps nothing before configure. Without one the gate works all the same, so that a failure is
// only logged.
func openHistory(c *config.Config, log *slog.Logger) *history {
	h := &history{dir: setup.DecisionsDir(c), log: log, reader: decisions.NewReader(setup.DecisionsDir(c))}
	return h
}

// prepare prepares the change to a configuration: see part.
func (h *history) prepare(_ context.Context, _, c *config.Config) (change, error) {
	return change{commit: func() { h.configure(c.Decisions) }}, nil
}

// begin is for a gate that has opened its listeners. Before, a history that is off is not removed: if
// the gate fails to start, its predecessor goes on with the history.
func (h *history) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = true
	if h.config.Keep == 0 {
		h.clean()
	}
}

// Until the predecessor has finished its mail it writes to a history that is off for the successor.
const (
	cleanEvery = time.Minute
	cleanFor   = time.Hour
)

// clean removes what was kept, now and later. The caller has locked mu.
func (h *history) clean() {
	h.off = time.Now()
	h.remove()
	h.cleaner = time.AfterFunc(cleanEvery, h.cleanAgain)
}

// cleanAgain removes what a predecessor has written meanwhile.
func (h *history) cleanAgain() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.off.IsZero() {
		return
	}
	h.remove()
	if time.Since(h.off) < cleanFor {
		h.cleaner.Reset(cleanEvery)
	}
}

// keep ends the removal. The caller has locked mu.
func (h *history) keep() {
	h.off = time.Time{}
	if h.cleaner != nil {
		h.cleaner.Stop()
	}
}

// configure opens, changes or ends the history, as the configuration says.
func (h *history) configure(c config.Decisions) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.config = c
	h.keep()
	switch r := h.recorder.Load(); {
	case c.Keep == 0:
		h.recorder.Store(nil)
		h.closeRecorder(r)
		if h.begun {
			h.clean()
		}
	case r != nil:
		r.Configure(c.Keep, int64(c.MaxBytes), c.Record == config.RecordAll)
	default:
		r, err := decisions.Open(decisions.Options{
			Dir: h.dir, Keep: c.Keep, MaxBytes: int64(c.MaxBytes), All: c.Record == config.RecordAll, Logger: h.log,
		})
		if err != nil {
			h.log.Error("no history of decisions", "error", err)
			h.fault = err.Error()
			return
		}
		h.fault = ""
		h.recorder.Store(r)
	}
}

// remove removes what a history kept that is off now.
func (h *history) remove() {
	h.fault = ""
	if _, err := os.Lstat(h.dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := os.RemoveAll(h.dir); err != nil { // which follows no links
		h.log.Warn("the history of decisions is off, and what it kept cannot be removed", "error", err)
		return
	}
	h.log.Info("the history of decisions is off, what it kept is removed", "dir", h.dir)
}

func (h *history) closeRecorder(r *decisions.Recorder) {
	if r == nil {
		return
	}
	if err := r.Close(); err != nil {
		h.log.Warn("the last decisions are not in the history", "error", err)
	}
}

// close writes what waits, and closes the history.
func (h *history) close() error {
	h.mu.Lock()
	h.keep()
	h.mu.Unlock()
	h.closeRecorder(h.recorder.Swap(nil))
	h.reader.Close()
	return nil
}

// Accepted implements smtpfilter.History.
func (h *history) Accepted(instant time.Time) bool {
	r := h.recorder.Load()
	return r != nil && r.Accepted(instant)
}

// Record implements smtpfilter.History.
func (h *history) Record(d verdict.Decision) {
	if r := h.recorder.Load(); r != nil {
		r.Record(decisions.New(&d))
	}
}

// maxSync bounds how long a search waits for what is not committed yet.
const maxSync = 2 * time.Second

// sync waits until what was recorded before can be found.
func (h *history) sync(ctx context.Context) {
	if r := h.recorder.Load(); r != nil {
		ctx, cancel := context.WithTimeout(ctx, maxSync)
		defer cancel()
		_ = r.Sync(ctx) // what stands still is found as far as it goes
	}
}

// Find implements admin.History.
func (h *history) Find(ctx context.Context, q decisions.Query) (decisions.Page, error) {
	h.sync(ctx)
	page, err := h.reader.Find(ctx, q)
	if s := h.status(); s != nil {
		page.Fault = s.Error
	}
	return page, err
}

// Each implements admin.History.
func (h *history) Each(ctx context.Context, q decisions.Query, each func(decisions.Decision) error) error {
	h.sync(ctx)
	return h.reader.Each(ctx, q, each)
}

// Top implements admin.History.
func (h *history) Top(ctx context.Context, kind string, since time.Time, limit int, q decisions.Query) ([]decisions.Ranked, error) {
	h.sync(ctx)
	return h.reader.Top(ctx, kind, since, limit, q)
}

// Totals implements admin.History.
func (h *history) Totals(ctx context.Context, since, until time.Time) ([]decisions.Total, error) {
	h.sync(ctx)
	return h.reader.Totals(ctx, since, until)
}

// status returns the state of the history, nil if it is off.
func (h *history) status() *admin.Decisions {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.config.Keep == 0 && h.fault == "" {
		return nil
	}
	s := &admin.Decisions{
		Keep: int64(h.config.Keep.Seconds()), MaxBytes: int64(h.config.MaxBytes), Record: h.config.Record, Error: h.fault,
	}
	if r := h.recorder.Load(); r != nil {
		stats := r.Stats()
		s.Rows, s.Merged, s.Dropped, s.Queued = stats.Rows, stats.Merged, stats.Dropped, stats.Queued
		s.Bytes, s.Files, s.Short, s.Error = stats.Bytes, stats.Files, stats.Short, stats.Err
		s.Reach = report.TimeOrNil(stats.Oldest)
	}
	return s
}

// The metrics of the history.
var (
	descRows    = desc("decisions_rows_total", "Decisions written to the history; equal ones of a flood share a row.")
	descMerged  = desc("decisions_merged_total", "Decisions that were counted in a row of the history instead of getting one.")
	descDropped = desc("decisions_dropped_total", "Decisions that are not in the history, since its disk was too slow or full.")
	descQueued  = desc("decisions_queued", "Decisions that wait to be written to the history.")
	descKept    = desc("decisions_bytes", "The size of the history's files.")
	descOldest  = desc("decisions_oldest_seconds", "When the oldest decision in the history was made, in seconds since 1970.")
	descShort   = desc("decisions_short", "1 if the history is full and reaches back less than keep, else 0.")
	descWorks   = desc("decisions_working", "1 if the history takes decisions, 0 if it stands still: see the log.")
)

// Describe implements prometheus.Collector.
func (h *history) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descRows, descMerged, descDropped, descQueued, descKept, descOldest, descShort, descWorks} {
		to <- d
	}
}

// Collect implements prometheus.Collector. A history that is off has no metrics.
func (h *history) Collect(to chan<- prometheus.Metric) {
	s := h.status()
	if s == nil {
		return
	}
	counter := func(d *prometheus.Desc, value int64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value))
	}
	gauge := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	counter(descRows, s.Rows)
	counter(descMerged, s.Merged)
	counter(descDropped, s.Dropped)
	gauge(descQueued, float64(s.Queued))
	gauge(descKept, float64(s.Bytes))
	if s.Reach != nil {
		gauge(descOldest, float64(s.Reach.Unix()))
	}
	is := map[bool]float64{true: 1}
	gauge(descShort, is[s.Short])
	gauge(descWorks, is[s.Error == ""])
}
