package gate

import (
	"fmt"
	"net"
	"strings"

	"spamgate/blocklist"
	"spamgate/internal/config"
	"spamgate/internal/logging"
	"spamgate/internal/report"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/version"
)

// announce reports what the gate has loaded, where it listens, where mail goes and what to
// try next: to people in a few lines, to programs in log records.
func (g *gate) announce() {
	stats := g.store.Set().Stats()
	addrs := g.addresses()
	if g.config.Log.Output == logging.OutputStderr && g.config.Log.Format == logging.FormatText {
		g.welcome(stats, addrs)
	} else {
		g.log.Info("listening", "addr", strings.Join(addrs, ","), "next_hop", g.hops.String(), "hostname", g.config.Hostname)
		g.logState("loaded")
		g.logLimits()
	}
	g.warnDescriptors()
	if report.Discards(g.config) {
		g.log.Warn("mail that a list with the action discard matches is accepted and dropped")
	}
	if stats.Warning != "" {
		g.log.Warn(stats.Warning)
	}
	if warning := report.Unconfirmed(g.config, stats); warning != "" {
		g.log.Warn(warning)
	}
	g.logWarnings(g.config)
}

// addresses returns the addresses of the open listeners.
func (g *gate) addresses() (addrs []string) {
	for _, h := range g.held {
		addrs = append(addrs, h.Listener.Addr().String())
	}
	return addrs
}

// logWarnings logs the warnings about the configuration.
func (g *gate) logWarnings(c *config.Config) {
	for _, warning := range c.Warnings {
		g.log.Warn("configuration", "warning", warning.Error())
	}
}

// welcome prints the announcement for people.
func (g *gate) welcome(stats blocklist.SetStats, addrs []string) {
	w := g.stderr
	fmt.Fprintf(w, "spamgate %s at %s\n", version.Number, g.config.Hostname)
	report.PrintLists(w, stats)
	label := "listening"
	for _, e := range g.listeners {
		shown := addrs[:len(e.sockets)]
		addrs = addrs[len(e.sockets):]
		term.PrintParts(w, label, report.DescribeListener(e.config, shown))
		label = ""
	}
	report.PrintLimits(w, g.config)
	report.PrintNextHops(w, g.config)
	report.PrintRecipients(w, g.recipients)
	report.PrintMode(w, g.config)
	fmt.Fprintf(w, "  try        swaks -s %s%s -f spammer@example.com -t %s\n",
		reachable(g.held[0].Listener.Addr().String()), swaksTLS[g.listeners[0].config.TLS], recipient(g.recipientDomains()))
	if path := editable(g.config); path != "" {
		fmt.Fprintf(w, "             echo 'offers.example  # reported three times' >> %s\n", term.ShortPath(path))
	}
	fmt.Fprintln(w, "             spamgate check ADDRESS   shows what happens to a sender, and why")
}

// recipient returns an example of a recipient that the gate accepts.
func recipient(domains []string) string {
	domain := "example.net"
	if len(domains) > 0 {
		domain = strings.TrimPrefix(domains[0], ".")
	}
	return "you@" + domain
}

// swaksTLS holds the options of swaks for listeners that require TLS.
var swaksTLS = map[string]string{"required": " -tls", "implicit": " -tlsc"}

// reachable returns an address at which a client on this machine can reach the gate.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// editable returns the file of the first block list that is one file in the plain format,
// or "".
func editable(c *config.Config) string {
	for _, l := range c.Lists {
		if l.Type == "block" && l.Path != "" && l.Format == "plain" && !strings.ContainsAny(l.Path, `*?[\`) {
			return l.Path
		}
	}
	return ""
}

// logLimits logs the limits on connections of each listener, so that a default that an
// upgrade has changed shows at the first start after it.
func (g *gate) logLimits() {
	descriptors := setup.DescriptorLimit()
	auto := setup.AutoConnections(g.config, descriptors)
	for _, l := range g.config.Listeners {
		g.log.Info("limits on connections (0: none)", "listener", l.Name,
			"max_connections", setup.MaxConnections(l, auto), "client_connections", l.ClientConnections,
			"network_connections", l.NetworkConnections, "descriptors", descriptors)
	}
}

// warnDescriptors warns if the process may not open enough files.
func (g *gate) warnDescriptors() {
	if warning := setup.DescriptorWarning(g.config, setup.DescriptorLimit()); warning != "" {
		g.log.Warn(warning)
	}
}
