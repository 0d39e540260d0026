package mailservers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// checkMail looks for parameters with which Postfix refuses the gate's mail, or changes it after
// the gate has judged it. Their defaults are right. Service is where the gate connects; without
// a name it has the parameters of main.cf.
func (s Settings) checkMail(c postfixConfig, service masterService) []Finding {
	r := receiver{c, service}
	found := s.checkTLS(r)
	if value := r.get("smtpd_upstream_proxy_protocol"); value != "" && !s.Proxy {
		found = append(found, r.instead("smtpd_upstream_proxy_protocol", "",
			"Postfix waits for a PROXY header, which the gate does not send (proxy in [next_hop]): no mail passes"))
	}
	for _, name := range restrictionNames {
		found = append(found, s.checkRefusal(r, name)...)
	}
	return append(append(found, checkFilter(r)...), c.checkLimits()...)
}

// instead returns a Finding about a parameter that must have another value in the gate's service.
func (r receiver) instead(name, value, why string) Finding {
	file, found, _ := r.find(name)
	return Finding{Status: Wrong, File: masterCF, Line: "    -o " + name + "=" + value, Found: file + ": " + found, Why: why}
}

// certificate returns the file of Postfix's certificate, or "".
func (r receiver) certificate() string {
	for _, name := range []string{"smtpd_tls_chain_files", "smtpd_tls_cert_file", "smtpd_tls_eccert_file", "smtpd_tls_dcert_file"} {
		if value := r.get(name); value != "" && value != "none" {
			return value
		}
	}
	return ""
}

// checkTLS checks whether Postfix demands TLS of a gate that is on the same machine. The level
// takes precedence over the older smtpd_enforce_tls.
func (s Settings) checkTLS(r receiver) []Finding {
	const name, enforce, wrapper = "smtpd_tls_security_level", "smtpd_enforce_tls", "smtpd_tls_wrappermode"
	if !s.OnThisMachine() || s.TLS {
		return nil // the gate uses STARTTLS
	}
	level := r.get(name)
	demands := level != "" && level != "none" && level != "may" || level == "" && r.get(enforce) == "yes"
	switch {
	case r.get(wrapper) == "yes":
		return []Finding{r.instead(wrapper, "no", "Postfix begins with TLS, and the gate does not: no mail passes")}
	case !demands:
		return nil
	}
	f := r.instead(name, "may", "Postfix refuses mail before STARTTLS, which it cannot offer without a certificate: no mail passes")
	if file, found, _ := r.find(enforce); level == "" {
		f.Found = file + ": " + found
	}
	if r.certificate() != "" {
		f.Advice, f.Why = true, "Postfix refuses mail before STARTTLS. The gate uses STARTTLS as long as Postfix offers it, with the certificate "+r.certificate()+
			"; on the same machine it is not needed"
	}
	return []Finding{f}
}

// checkRefusal checks a list of restrictions for an entry that refuses all mail of strangers.
func (s Settings) checkRefusal(r receiver, name string) []Finding {
	list := entries(r.get(name))
	i := s.refusesStrangers(r, list)
	if i < 0 {
		return nil
	}
	value := ""
	if name == "smtpd_recipient_restrictions" || name == relayRestrictions {
		value = strings.Join(append(slices.Clone(list[:i]), "reject_unauth_destination"), ",")
	}
	client := "mail from the gate, which is no client of mynetworks"
	if s.XCLIENT || s.Proxy {
		client = "the mail of every client that the gate names, unless it is in mynetworks or has logged in"
	}
	return []Finding{r.instead(name, value, fmt.Sprintf("with %q at the end of this list Postfix refuses %s", list[i], client))}
}

// refusesStrangers returns the index of the entry of a list of restrictions that refuses all mail
// of strangers, or -1 if there is none, or if an entry before it may permit them: a table, a
// policy service, a class.
func (s Settings) refusesStrangers(r receiver, list []string) int {
	for i, entry := range list {
		switch word := strings.ToLower(entry); {
		case word == "reject", word == "defer":
			if i == 0 || !strings.EqualFold(list[i-1], "warn_if_reject") {
				return i
			}
		case word == "permit_mynetworks" && !s.XCLIENT && !s.Proxy: // the client is the gate
			if in, known := inNetworks(r.get("mynetworks"), s.gate()); in || !known || !s.OnThisMachine() {
				return -1
			}
		case word == "permit_mynetworks", word == "permit_sasl_authenticated", word == "warn_if_reject",
			strings.HasPrefix(word, "permit_tls_"), strings.HasPrefix(word, "reject_"), strings.HasPrefix(word, "defer_"):
		default:
			return -1
		}
	}
	return -1
}

// checkFilter checks the way back from a content filter. There Postfix sees a client of this
// machine, whose headers it completes, and it maps addresses again.
func checkFilter(r receiver) []Finding {
	const name, rewrite, override, mappings = "content_filter", "local_header_rewrite_clients", "receive_override_options", "no_address_mappings"
	if r.get(name) == "" {
		return nil
	}
	file, value, _ := r.find(name)
	var found []Finding
	back := false
	for _, service := range r.services {
		b := receiver{r.postfixConfig, service}
		if service.name == r.service.name || service.command != "smtpd" || !sameHost(service.host, "localhost") || b.get(name) != "" {
			continue
		}
		back = true
		where := service.name + " inet ... smtpd, with " + file + ": " + value
		if b.get(rewrite) != "" {
			found = append(found, Finding{Status: Wrong, File: masterCF, Line: "    -o " + rewrite + "=", Found: where,
				Why: "mail comes back from the filter here, and Postfix completes addresses in its header after the gate has judged them"})
		}
		if !containsWord(b.get(override), mappings) && !containsWord(r.get(override), mappings) {
			found = append(found, Finding{Status: Wrong, File: masterCF, Line: "    -o " + override + "=" + mappings, Found: where, Advice: true,
				Why: "mail comes back from the filter here, and Postfix maps its addresses a second time"})
		}
	}
	if !back {
		return []Finding{{Status: Unknown, File: file, Found: value, Advice: true,
			Why: "mail does not come back from the filter to an smtpd on loopback. If the filter uses the sendmail command, Postfix completes addresses in headers after the gate has judged them"}}
	}
	return found
}

// lengthLimits are the parameters at which Postfix cuts header fields or lines, with their
// defaults. The bounds of the gate for the fields that it judges fit these.
var lengthLimits = []struct {
	name, cut string
	usual     int
}{
	{"header_size_limit", "cuts header fields", 102400},
	{"line_length_limit", "cuts commands and the lines that it reads", 2048},
	{"smtp_line_length_limit", "breaks the lines that it sends to other servers", 998},
	{"lmtp_line_length_limit", "breaks the lines that it sends to an LMTP server", 998},
}

// checkLimits checks lengthLimits in main.cf and in all services, such as cleanup. 0 as a limit of
// lines is none.
func (c postfixConfig) checkLimits() []Finding {
	var found []Finding
	check := func(file, service string, values map[string]string) {
		for _, l := range lengthLimits {
			value, set := values[l.name]
			if n, err := strconv.Atoi(value); set && (err != nil || n != l.usual) {
				f := Finding{Status: Wrong, File: file, Line: l.name + " = " + strconv.Itoa(l.usual), Found: service + l.name + " = " + value,
					Why: fmt.Sprintf("Postfix %s there, after the gate has judged them whole: readers may see another sender", l.cut)}
				if n > l.usual || n == 0 && l.name != "header_size_limit" {
					f.Advice, f.Why = true, "Postfix passes on more than other servers take, and these may cut it after the gate has judged it"
				}
				found = append(found, f)
			}
		}
	}
	check(mainCF, "", c.main)
	for _, service := range slices.Sorted(maps.Keys(c.options)) {
		check(masterCF, service+" ... -o ", c.options[service])
	}
	return found
}
