package mailservers

import (
	"slices"
	"strings"
)

// askingNames are the parameters that decide whether Postfix asks the gate. The lists of
// restrictions are in the order in which an entry in them is preferred.
var (
	restrictionNames = []string{"smtpd_recipient_restrictions", "smtpd_relay_restrictions", "smtpd_sender_restrictions", "smtpd_helo_restrictions",
		"smtpd_client_restrictions", "smtpd_data_restrictions", "smtpd_end_of_data_restrictions"}
	milterNames = []string{"smtpd_milters", "receive_override_options"}
)

// checkAsking looks for the lines with which Postfix asks the gate.
func (s Settings) checkAsking(k Kind, text string) ([]Finding, error) {
	c, err := parsePostfix(text)
	if err != nil {
		return nil, err
	}
	names, check := restrictionNames, s.checkPolicy
	if k == PostfixMilter {
		names, check = milterNames, s.checkMilter
	}
	var all []Finding
	for _, r := range c.receivers(names) {
		for _, f := range check(r) {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	if k == PostfixPolicy {
		return all, nil
	}
	const other = "non_smtpd_milters"
	if value := c.main[other]; slices.ContainsFunc(entries(value), s.isDoor) {
		all = append(all, Finding{Status: Wrong, File: mainCF, Found: other + " = " + value,
			Why: "remove the gate from it: mail of the sendmail command, and bounces, must not be rejected"})
	}
	return all, nil
}

// A receiver is a service that takes mail from strangers. Without a name it is any service
// whose parameters are those of main.cf.
type receiver struct {
	postfixConfig
	service masterService
}

// receivers returns main.cf, if a service for strangers has its values of the parameters or
// if there is no such service, and the services that have others.
func (c postfixConfig) receivers(names []string) []receiver {
	var own []receiver
	plain := false
	for _, service := range c.services {
		stranger := service.port == "25" && !sameHost(service.host, "localhost") || service.kind == "pass"
		switch {
		case !stranger || service.command != "smtpd":
		case slices.ContainsFunc(names, func(name string) bool { _, set := c.options[service.name][name]; return set }):
			own = append(own, receiver{c, service})
		default:
			plain = true
		}
	}
	if plain || len(own) == 0 {
		return append([]receiver{{c, masterService{}}}, own...)
	}
	return own
}

func (r receiver) get(name string) string { return r.value(r.service.name, name) }

// find returns the file that has a parameter's value, the parameter with its value, or ""
// if it is not set, and how to say that master.cf replaces it.
func (r receiver) find(name string) (file, found, replaced string) {
	if value, set := r.options[r.service.name][name]; set {
		return masterCF, r.service.name + " " + r.service.kind + " ... -o " + name + "=" + value, ": this -o replaces the value of main.cf"
	}
	return mainCF, withName(name, r.main[name]), ""
}

// checkMilter looks for the gate in smtpd_milters.
func (s Settings) checkMilter(r receiver) []Finding {
	const name = "smtpd_milters"
	line := name + " = { " + s.postfixDoor() + ", default_action=accept }"
	file, found, replaced := r.find(name)
	list := entries(r.get(name))
	i := slices.IndexFunc(list, s.isDoor)
	if i < 0 {
		return []Finding{finding(file, line, found, false, "Postfix does not ask the gate"+replaced)}
	}
	all := []Finding{{Status: Present, File: file, Line: found}}
	if why := withoutGate(r.get("milter_default_action"), "tempfail", "accept"); why != "" && !strings.Contains(list[i], "default_action") {
		all = append(all, Finding{Status: Wrong, File: file, Line: "{ " + s.postfixDoor() + ", default_action=accept } in " + name, Found: list[i], Why: why, Advice: true})
	}
	const override = "receive_override_options"
	if file, found, _ := r.find(override); containsWord(r.get(override), "no_milters") {
		all = append(all, Finding{Status: Wrong, File: file, Found: found, Why: "with no_milters Postfix does not ask the gate"})
	}
	return all
}

// withoutGate returns what happens when the gate does not answer, or "" if mail passes. An
// empty action is the default of Postfix.
func withoutGate(action, byDefault, passes string) string {
	does := ""
	if action == "" {
		action = byDefault
	}
	word, _, _ := strings.Cut(action, " ")
	switch {
	case strings.EqualFold(word, passes):
		return ""
	case word == "tempfail" || word == "451":
		does = "Postfix replies 451, and senders try again"
	case word == "shutdown" || word == "421":
		does = "Postfix disconnects senders with 421, and they try again"
	default:
		does = "Postfix's default applies, " + action
	}
	return "without an answer of the gate " + does + "; for a trial, let mail pass"
}

// checkPolicy looks for the gate in the lists of restrictions.
func (s Settings) checkPolicy(r receiver) []Finding {
	line := "check_policy_service { " + s.postfixDoor() + ", default_action=DUNNO, timeout=5s }"
	var never []Finding
	for _, name := range restrictionNames {
		list := entries(r.get(name))
		i := s.policyEntry(list)
		if i < 0 {
			continue
		}
		file, found, replaced := r.find(name)
		if end := endOf(list[:i]); end != "" {
			never = append(never, finding(file, line+" before "+end, found, false, end+" ends the checks of this list, so Postfix never asks the gate"+replaced))
			continue
		}
		all := []Finding{{Status: Present, File: file, Line: found}}
		if why := withoutGate(r.get("smtpd_policy_service_default_action"), "451", "DUNNO"); why != "" && !strings.Contains(list[i+1], "default_action") {
			all = append(all, Finding{Status: Wrong, File: file, Line: line, Found: list[i] + " " + list[i+1], Why: why, Advice: true})
		}
		return append(all, r.checkPlace(name, list[:i])...)
	}
	if len(never) > 0 {
		return never
	}
	file, found, replaced := r.find(restrictionNames[0])
	return []Finding{finding(file, line, found, false, "Postfix does not ask the gate at RCPT"+replaced)}
}

// checkPlace checks whether the gate can refuse in a list of restrictions, and what Postfix
// asks about. Before are the entries before the gate's.
func (r receiver) checkPlace(name string, before []string) []Finding {
	file, found, _ := r.find(name)
	switch name {
	case "smtpd_recipient_restrictions", "smtpd_relay_restrictions":
		first, second := "smtpd_recipient_restrictions", "smtpd_relay_restrictions"
		if r.get("smtpd_relay_before_recipient_restrictions") == "yes" {
			first, second = second, first
		}
		if refusesRelay(before) || name == second && refusesRelay(entries(r.get(first))) {
			return nil
		}
		return []Finding{{Status: Wrong, File: file, Line: "reject_unauth_destination before check_policy_service", Found: found,
			Why: "the gate is also asked about mail that Postfix refuses to relay", Advice: true}}
	case "smtpd_data_restrictions", "smtpd_end_of_data_restrictions":
		return []Finding{{Status: Wrong, File: file, Line: "check_policy_service in " + restrictionNames[0], Found: found,
			Why: "Postfix names no recipient here if a message has several, and the gate then refuses nobody", Advice: true}}
	}
	const delay = "smtpd_delay_reject"
	file, found, _ = r.find(delay)
	return []Finding{finding(file, delay+" = yes", found, r.get(delay) != "no", "Postfix asks before it knows the recipient, and the gate then refuses nobody")}
}

// policyEntry returns the index of the check_policy_service that asks the gate, or -1.
func (s Settings) policyEntry(list []string) int {
	for i := range len(list) - 1 {
		if strings.EqualFold(list[i], "check_policy_service") && s.isDoor(list[i+1]) {
			return i
		}
	}
	return -1
}

// endOf returns the entry that ends a list of restrictions for all mail, or "".
func endOf(list []string) string {
	for i, entry := range list {
		warns := i > 0 && strings.EqualFold(list[i-1], "warn_if_reject")
		switch strings.ToLower(entry) {
		case "permit":
			return entry
		case "reject", "defer":
			if !warns {
				return entry
			}
		}
	}
	return ""
}

// refusesRelay reports whether a list of restrictions refuses mail that Postfix does not
// relay.
func refusesRelay(list []string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		return slices.Contains([]string{"reject_unauth_destination", "defer_unauth_destination", "reject", "defer"}, strings.ToLower(entry))
	})
}

// entries splits a list of Postfix at commas and white space outside of braces.
func entries(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '{':
			depth++
		case '}':
			depth--
		}
		return depth <= 0 && strings.ContainsRune(", \t", r)
	})
}

// isDoor reports whether an entry for a service, with or without braces, is the door. A
// path may be relative to the queue directory.
func (s Settings) isDoor(entry string) bool {
	words := strings.FieldsFunc(entry, func(r rune) bool { return strings.ContainsRune(", \t{}", r) })
	if len(words) == 0 {
		return false
	}
	door := s.postfixDoor()
	path := strings.TrimPrefix(words[0], "unix:"+queueDirectory)
	return strings.TrimPrefix(path, "unix:") == strings.TrimPrefix(door, "unix:") || strings.ReplaceAll(path, "localhost:", "127.0.0.1:") == door
}
