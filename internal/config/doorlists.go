package config

import (
	"fmt"
	"slices"
	"strings"
)

// unaskedLists warns about lists that no listener asks, and no door either, though a door
// has them.
func (d *document) unaskedLists() {
	for i, l := range d.cfg.Lists {
		asked := slices.ContainsFunc(d.cfg.Listeners, func(o Listener) bool { return includes(o.Lists, l.Name) })
		var whys, hints []string
		for _, door := range d.cfg.Doors() {
			if !includes(door.Lists, l.Name) {
				continue
			}
			why, hint := door.passesOver(&l)
			asked = asked || why == ""
			if !slices.Contains(whys, why) {
				whys, hints = append(whys, why), append(hints, hint)
			}
		}
		if asked || len(whys) == 0 {
			continue
		}
		key := ".stage"
		if l.InDNS() && slices.Contains(l.Stage, stageEnvelope) {
			key = ".dns_zone"
		} else if l.PerRecipient && slices.Contains(l.Stage, stageEnvelope) {
			key = ".per_recipient"
		}
		d.warn(element("list", i)+key, fmt.Sprintf("no door asks the list %q: %s", l.Name, strings.Join(whys, ", and ")), hints[0])
	}
}

// includes reports whether the lists that apply include that name. No names are all lists.
func includes(names []string, name string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

// passesOver returns why the door does not ask a list that it has, and what to do, or "".
func (d Door) passesOver(l *List) (why, hint string) {
	envelope := slices.Contains(l.Stage, stageEnvelope)
	switch {
	case d.Table == TablePolicyService && !envelope:
		return "a policy service sees no header", `add "envelope", or a [[milter]]`
	case d.Table == TableDNSServer && l.InDNS():
		return "a [[dns_server]] does not publish lists in DNS again", "add a [[policy_service]], a [[milter]] or a [[listener]], or remove the list"
	case d.Table == TableDNSServer && l.PerRecipient:
		return "a question over DNS names no recipient", "add a [[policy_service]], a [[milter]] or a [[listener]], or remove the list"
	case d.Table == TableDNSServer && !envelope && len(d.Lists) == 0:
		return "a [[dns_server]] asks a list for headers only if its lists name it", `add "envelope", or write lists in the [[dns_server]], with this one among them`
	}
	return "", ""
}
