package blocklist

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"spamgate/blocklist/verdict"
)

// List says what the matches of one list mean.
type List struct {
	// Name is unique among the lists, printable, and shown in logs and replies.
	Name string

	Type ListType

	// Action is what a block list's match asks for: Tag, Discard, Defer, Reject
	// or Monitor. An allow list has none (Accept, the zero value).
	Action verdict.Action

	// HeaderAction takes Action's place at stage Header; zero means Action.
	HeaderAction verdict.Action

	// Stages is where the list is looked up; zero means everywhere.
	Stages verdict.Stage

	// Override lets an allow list beat every block list, however specific.
	Override bool

	// ProvenBy lets the matches of an allow list count only if one of the proofs holds.
	// Zero means that they always count.
	ProvenBy verdict.Proofs

	// PerRecipient says that the list has entries for recipients, and no others. They count
	// for the keys of a recipient alone: see [View.RecipientKeys].
	PerRecipient bool

	// PublicReason permits to show an entry's reason to clients. It changes
	// nothing here and is handed on in [verdict.Match].
	PublicReason bool

	// Asked, if not nil, says that another server answers for the list. Its Index is
	// empty, and [View.Find] asks it.
	Asked *Asked
}

// action returns what a match asks for at a stage.
func (l *List) action(stage verdict.Stage) verdict.Action {
	if stage == verdict.Header && l.HeaderAction != verdict.Accept {
		return l.HeaderAction
	}
	return l.Action
}

// Validate returns an error for each thing that is wrong with the list.
func (l *List) Validate() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("list %q: %w", l.Name, fmt.Errorf(format, args...)))
	}
	if !validName(l.Name) {
		fail("the name must not be empty, nor hold anything unprintable, nor begin or end with a space")
	}
	if l.Stages&^verdict.AllStages != 0 {
		fail("unknown stage %d: use envelope, header or both", l.Stages)
	}
	if l.PerRecipient && l.Asked != nil {
		fail("a list in DNS has no entries for recipients: leave out per_recipient, or keep the entries in a file")
	}
	switch l.Type {
	case Block:
		if l.ProvenBy != 0 {
			fail("proven_by is for allow lists, whose entries count only for senders that are not forged: leave it out")
		}
		if !blockAction(l.Action) {
			fail("action %s is not for a block list: use reject, defer, discard, tag or monitor", l.Action)
		}
		if l.HeaderAction != verdict.Accept && !blockAction(l.HeaderAction) {
			fail("header action %s is not for a block list: use reject, defer, discard, tag or monitor", l.HeaderAction)
		}
		if l.ProvenBy != 0 {
			fail("proofs are for allow lists: leave proven_by out, or make the list an allow list")
		}
		if l.Override {
			fail("override is for allow lists: leave it out, or make the list an allow list")
		}
	case Allow:
		if l.Asked != nil {
			fail("an allow list cannot be asked over DNS, since an answer can be forged: keep its entries in a file")
		}
		if l.Action != verdict.Accept || l.HeaderAction != verdict.Accept {
			fail("an allow list has no action: leave it out, or make the list a block list")
		}
	default:
		fail("unknown type %s: use block or allow", l.Type)
	}
	return errors.Join(errs...)
}

func blockAction(a verdict.Action) bool { return a > verdict.Accept && a <= verdict.Monitor }

func validName(name string) bool {
	return name != "" && strings.TrimSpace(name) == name &&
		strings.IndexFunc(name, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) < 0
}
