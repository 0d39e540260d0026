package smtpfilter

import (
	"log/slog"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter/wire"
)

// logEach is a line for the recipients that have a message, and one for those that
// the next hop has refused in the same words, where it has not said the same of all.
func (s *session) logEach(t *transaction, size int64, reply wire.Reply, each []wire.Reply) {
	t.outcome = OutcomePartial
	line := func(text string, first int, to []wire.Path) {
		s.log(slog.LevelInfo, text, t, t.envelope, to, verdict.Accept.String(), reply,
			s.nextHopAttr(t, each[first]), slog.Int64("size", size))
	}
	var delivered []wire.Path
	first := -1
	refused := map[string][]wire.Path{}
	for i, r := range each {
		switch {
		case r.IsZero():
		case r.Positive():
			if delivered = append(delivered, t.accepted[i].path); first < 0 {
				first = i
			}
		default:
			refused[t.words(i, r)] = append(refused[t.words(i, r)], t.accepted[i].path)
		}
	}
	if first >= 0 {
		line("delivered to some recipients", first, delivered)
	}
	for i, r := range each {
		if to := refused[t.words(i, r)]; to != nil {
			line("refused by the next hop", i, to)
			delete(refused, t.words(i, r))
		}
	}
}

// logWait is the line of a recipient that the gate has told to come again, since
// others go first.
func (s *session) logWait(t *transaction, rcpt wire.Path, reply wire.Reply) {
	s.log(slog.LevelInfo, "other recipients go first", t, t.envelope, []wire.Path{rcpt}, verdict.Defer.String(), reply)
}

// logDeliveredBefore is the line of a message that all recipients have.
func (s *session) logDeliveredBefore(t *transaction, size int64, reply wire.Reply) {
	t.outcome = OutcomeAccepted
	s.log(slog.LevelInfo, "delivered before", t, t.envelope, t.recipients(), verdict.Accept.String(), reply, slog.Int64("size", size))
}

// logSomeHaveIt is the line of a message that was not delivered, since some
// recipients have it.
func (s *session) logSomeHaveIt(t *transaction, size int64, reply wire.Reply) {
	t.outcome = OutcomePartial
	s.log(slog.LevelInfo, "some recipients have the message", t, t.envelope, t.recipients(), verdict.Defer.String(), reply, slog.Int64("size", size))
}

// logForgetful is the line of a message whose outcomes are not on disk.
func (s *session) logForgetful(t *transaction, err error) {
	s.log(slog.LevelWarn, "who has the message is not on disk: if the gate restarts before the client comes again, some get it twice",
		t, t.envelope, nil, "", wire.Reply{}, s.errAttr(t, err))
}
