package gate

import (
	"fmt"
	"slices"

	"spamgate/internal/config"
	"spamgate/smtpfilter/nexthop"
)

// loginProblems says which listeners take no mail since they require a login, and their next hop,
// which answers, lets nobody log in.
func loginProblems(c *config.Config, hops nextHops) []string {
	var problems []string
	for _, l := range c.Listeners {
		target := hops.of(c.HopOf(l))
		if l.Auth != config.AuthRequire || target == nil || target.Extensions().Has("AUTH") ||
			!slices.ContainsFunc(nexthop.States(target), func(s nexthop.State) bool { return s.Known && s.Up }) {
			continue
		}
		problems = append(problems, fmt.Sprintf("no mail can pass at the listener %s: it requires a login, and the next hop %s does not offer AUTH to the gate "+
			"(Postfix: smtpd_sasl_auth_enable = yes; with smtpd_tls_auth_only = yes the gate needs next_hop.tls too)", l.Name, target))
	}
	return problems
}

// warnLogins logs the listeners at which nobody can log in.
func (g *gate) warnLogins() {
	for _, problem := range loginProblems(g.config, g.hops) {
		g.log.Warn(problem)
	}
}
