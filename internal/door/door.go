package door

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
)

// Config is what a door keeps while it runs.
type Config struct {
	// Protocol is the door in the log and in [verdict.Message]: "milter".
	Protocol string

	// Name is the door's name in the log and in metrics, as that of a listener.
	Name string

	// Log gets a line for every decision; nil means no log.
	Log *slog.Logger

	// ShowAddress returns an address as the log shows it; nil means unchanged.
	ShowAddress func(string) string

	// History takes every decision, whatever the level of the log; nil means none.
	History smtpfilter.History

	// Meter counts connections, messages and recipients; nil means no counts.
	Meter smtpfilter.Meter

	// Once is for a protocol that asks for each recipient, has neither header nor body, does
	// not say when a message ends, and cannot discard for one recipient. A refusal is logged
	// once, at the first recipient who is refused in these words. What a proof may still
	// decide gets the milder verdict. The message does not keep the lists of its beginning:
	// a recipient for whom something else counts is judged by the present ones.
	Once bool
}

// Settings may change while a door is open. A message keeps the settings of its beginning.
type Settings struct {
	// Checker judges the senders.
	Checker verdict.Checker

	// Policy says which senders are judged, and what a refusal says. Its recipient
	// domains and limits are not used: the mail server has its own.
	Policy smtpfilter.Policy

	// Signatures verifies DKIM signatures, if a verdict depends on them; nil means that
	// the milder verdict counts.
	Signatures smtpfilter.SignatureVerifier

	// MaxConnections bounds the connections; 0 means no bound. They are not bounded by
	// client, since all may come from one mail server.
	MaxConnections int
}

// Door judges messages. Its methods are safe for concurrent use.
type Door struct {
	cfg      Config
	settings atomic.Pointer[Settings]
}

// New returns a Door. The policy must be valid, see [smtpfilter.Policy.Validate].
func New(cfg Config, s Settings) *Door {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.ShowAddress == nil {
		cfg.ShowAddress = func(a string) string { return a }
	}
	if cfg.Meter == nil {
		cfg.Meter = smtpfilter.NoMeter{}
	}
	d := &Door{cfg: cfg}
	d.Apply(s)
	return d
}

// Apply changes the settings for new messages and connections.
func (d *Door) Apply(s Settings) { d.settings.Store(&s) }

// Settings returns the present settings. The caller must not change them.
func (d *Door) Settings() *Settings { return d.settings.Load() }

// Envelope is the beginning of a message, as the mail server tells it.
type Envelope struct {
	Client netip.AddrPort // not valid if it is not known
	Helo   string
	Login  string // of an authenticated client

	From    string // the reverse-path without brackets, "" for the null reverse-path
	QueueID string // of the mail server, as far as it is known
}

// ReadsBodies reports whether messages may depend on their signatures, so that their bodies are
// needed.
func (d *Door) ReadsBodies() bool {
	s := d.settings.Load()
	j, ok := s.Checker.Judge().(verdict.ProofJudge)
	return ok && s.Signatures != nil && j.Proofs()&verdict.DKIM != 0
}

// Begin begins a message and judges its reverse-path. All senders of the message are judged
// by one [verdict.Judge], but see Config.Once.
func (d *Door) Begin(ctx context.Context, e Envelope) *Message {
	settings := d.settings.Load()
	m := &Message{
		door:     d,
		settings: settings,
		ctx:      ctx,
		id:       rand.Text()[:12],
		began:    time.Now(),
		envelope: e,
		judged: smtpfilter.Judgement{Policy: &settings.Policy, Message: verdict.Message{
			Door:        d.cfg.Protocol,
			Listener:    d.cfg.Name,
			Client:      e.Client,
			Helo:        e.Helo,
			Login:       e.Login,
			ReversePath: e.From,

			EnvelopeOnly: d.cfg.Once,
		}},
	}
	m.judged.Begin(ctx, settings.Checker, e.Login != "")
	if d.cfg.Once {
		m.judged.AssumeProved(m.judged.Plain())
		m.dismiss()
	}
	return m
}

// dismiss replaces the Judge of a message that is remembered, which must not keep a Set in
// memory.
func (m *Message) dismiss() {
	if m.judged.Judge != nil {
		m.judged.Judge = judged(m.judged.Judge.Generation())
	}
}

// judged stands for a Judge that is not asked any more.
type judged uint64

func (g judged) Generation() uint64 { return uint64(g) }

func (judged) Judge(context.Context, *verdict.Message, verdict.Query) (verdict.Verdict, error) {
	return verdict.Verdict{}, verdict.ErrNoAnswer
}
