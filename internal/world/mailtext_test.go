package world

import (
	"fmt"
)

// String writes a list's options.
func (l *list) String() string {
	kind := "block " + l.action.String()
	if l.headerAction != accept {
		kind += " header_action=" + l.headerAction.String()
	}
	if l.allow {
		kind = "allow"
	}
	for _, word := range []struct {
		set  bool
		text string
	}{
		{l.override, "override"}, {!l.envelope, "stage=header"}, {!l.header, "stage=envelope"}, {l.exact, "exact"},
		{l.perRecipient, "per_recipient"}, {l.spf, "proven_by=spf"}, {l.dkim, "proven_by=dkim"},
	} {
		if word.set {
			kind += " " + word.text
		}
	}
	return fmt.Sprintf("list %s %s", l.name, kind)
}

func (r rule) String() string {
	return fmt.Sprintf("recipient_policy match=%s exempt=%v lists=%s max_action=%s monitor=%v", r.match, r.exempt, r.lists, r.maxAction, r.monitor)
}

func (f outage) String() string {
	who := "the lists cannot be asked"
	if f.rcpt != "" {
		who += " for " + f.rcpt
	}
	switch {
	case f.keys:
		return who + ": its entries cannot be read"
	case f.sender != "":
		who += " about " + f.sender
	}
	return fmt.Sprintf("%s: envelope %v, header %v", who, f.envelope, f.header)
}

func (f field) String() string {
	text := f.name + ":"
	for _, a := range f.addresses {
		text += " <" + a.written + ">"
	}
	return text
}

func (f fact) String() string { return [...]string{"fails", "holds", "temporary error"}[f] }
