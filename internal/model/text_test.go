package model

import (
	"fmt"
	"strings"
)

// String writes a configuration as config.toml has it, the lists below it.
func (w *world) String() string {
	var b strings.Builder
	for _, l := range w.lists {
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
		fmt.Fprintf(&b, "list %s %s\n", l.name, kind)
		for _, line := range l.lines {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	for _, r := range w.rules {
		fmt.Fprintf(&b, "recipient_policy match=%s exempt=%v lists=%s max_action=%s monitor=%v\n", r.match, r.exempt, r.lists, r.maxAction, r.monitor)
	}
	for _, f := range w.faults {
		fmt.Fprintf(&b, "the lists cannot be asked: %+v\n", f)
	}
	fmt.Fprintf(&b, "exempt_recipients=%s exempt_client=%v monitor=%v unwrap(srs=%v batv=%v) check_bounces=%v tag_mixed=%v",
		w.exemptRecipients, w.exemptClient, w.monitor, w.srs, w.batv, w.checkBounces, w.tagMixed)
	return b.String()
}

func (m *message) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "MAIL FROM:<%s>, spf %s, true client %v\n", m.from.written, m.spf, m.trueClient)
	for _, r := range m.rcpts {
		fmt.Fprintf(&b, "RCPT TO:<%s>\n", r)
	}
	for _, f := range m.fields {
		b.WriteString(f.name + ":")
		for _, a := range f.addresses {
			fmt.Fprintf(&b, " <%s>", a.written)
		}
		b.WriteByte('\n')
	}
	for _, s := range m.signatures {
		fmt.Fprintf(&b, "signature of %s %s\n", s.domain, s.fact)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (f fact) String() string { return [...]string{"fails", "holds", "temporary error"}[f] }
