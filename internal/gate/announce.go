package gate

import (
	"cmp"
	"fmt"
	"io"
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
	addrs := g.listeners.addresses()
	if g.config.Log.Output == logging.OutputStderr && g.config.Log.Format == logging.FormatText {
		g.welcome(stats, addrs)
	} else {
		for _, d := range g.doors.addresses() {
			g.log.Info("door open", "door", d.Door, "listener", d.Name, "addr", d.Address)
		}
		if len(addrs) > 0 {
			g.log.Info("listening", "addr", strings.Join(addrs, ","), "next_hop", g.hops.String(), "hostname", g.config.Hostname)
		}
		g.logState("loaded")
		g.logLimits()
	}
	if report.Discards(g.config) {
		g.log.Warn("mail that a list with the action discard matches is accepted and dropped")
	}
	if stats.Warning != "" {
		g.log.Warn(stats.Warning)
	}
	if warning := report.Unconfirmed(g.config, stats); warning != "" {
		g.log.Warn(warning)
	}
	g.warn()
}

// warn logs what may be wrong with the configuration: its own warnings, listeners at which nobody
// can log in, and whether the process may not open enough files.
func (g *gate) warn() {
	if warning := setup.DescriptorWarning(g.config, setup.DescriptorLimit()); warning != "" {
		g.log.Warn(warning)
	}
	for _, warning := range g.config.Warnings {
		g.log.Warn("configuration", "warning", warning.Error())
	}
	for _, problem := range loginProblems(g.config, g.hops) {
		g.log.Warn(problem)
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
	label = "doors"
	for _, d := range g.doors {
		term.PrintParts(w, label, report.DescribeDoor(g.config, d.shown()))
		label = ""
	}
	if s := g.admin.servers().web[consoleServer]; s != nil {
		report.PrintConsole(w, g.config, s.Open.Addr())
	}
	if s := g.admin.servers().web[publishServer]; s != nil {
		report.PrintPublish(w, g.config, s.Open.Addr())
	}
	report.PrintLimits(w, g.config)
	report.PrintNextHops(w, g.config)
	report.PrintRecipients(w, g.recipients)
	report.PrintPolicies(w, g.config)
	report.PrintMode(w, g.config)
	printTrials(w, g.trials())
}

// shown returns the door with the address that it has, which may be configured with port 0.
func (d *runningDoor) shown() config.Door {
	shown := d.config
	if shown.Name == shown.Addr {
		shown.Name = d.open.Addr()
	}
	shown.Addr = d.open.Addr()
	return shown
}

// printTrials prints lines with a label before the first.
func printTrials(w io.Writer, lines []string) {
	label := "try"
	for _, line := range lines {
		fmt.Fprintf(w, "  %-10s %s\n", label, line)
		label = ""
	}
}

// trials returns the lines that say how to try the first listener, each door and a list.
func (g *gate) trials() (lines []string) {
	if len(g.listeners) > 0 {
		first := g.listeners[0]
		lines = append(lines, fmt.Sprintf("swaks -s %s%s -f spammer@example.com -t %s",
			reachable(first.open[0].Addr().String()), swaksTLS[first.config.TLS], recipient(g.recipientDomains())))
	}
	for _, d := range g.doors {
		lines = append(lines, d.trial(g.config)...)
	}
	if l, ok := editable(g.config); ok && l.Managed {
		lines = append(lines, fmt.Sprintf("spamgate lists add offers.example --list %s --reason 'reported three times'", l.Name))
	} else if ok {
		lines = append(lines, "echo 'offers.example  # reported three times' >> "+term.ShortPath(l.Path))
	}
	return append(lines, "spamgate check ADDRESS   shows what happens to a sender, and why")
}

// trial returns the lines of a command that asks at the door. A milter is asked by mail servers
// only.
func (d *runningDoor) trial(c *config.Config) []string {
	switch d.config.Table {
	case config.TablePolicyService:
		path, unix := d.config.Unix()
		to := "-U " + term.ShellWord(term.ShortPath(path))
		if host, port, err := net.SplitHostPort(reachable(d.open.Addr())); err == nil && !unix {
			to = host + " " + port
		}
		return []string{
			`printf '%s\n' request=smtpd_access_policy protocol_state=RCPT \`,
			"  sender=spammer@example.com recipient=you@example.net '' |",
			"  nc -q 1 " + to,
		}
	case config.TableDNSServer:
		host, port, err := net.SplitHostPort(reachable(d.open.Addr()))
		if err != nil {
			return nil
		}
		return []string{fmt.Sprintf("dig @%s -p %s +short TEST.%s", host, port, cmp.Or(d.config.Zone, d.config.HashedZone))}
	}
	return nil
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

// editable returns the first block list that is one file in the plain format, without lines for
// recipients.
func editable(c *config.Config) (l config.List, ok bool) {
	for _, l := range c.Lists {
		if l.Type == "block" && l.Path != "" && l.Format == "plain" && !l.PerRecipient && !strings.ContainsAny(l.Path, `*?[\`) {
			return l, true
		}
	}
	return l, false
}

// logLimits logs the limits on connections of each listener, so that a default that an
// upgrade has changed shows at the first start after it.
func (g *gate) logLimits() {
	descriptors := setup.DescriptorLimit()
	auto := setup.AutoConnections(g.config, descriptors)
	for _, d := range g.config.Doors {
		g.log.Info("limits on connections (0: none)", "listener", d.Name,
			"max_connections", d.MaxConnections.Number(auto), "descriptors", descriptors)
	}
	for _, l := range g.config.Listeners {
		g.log.Info("limits on connections (0: none)", "listener", l.Name,
			"max_connections", l.MaxConnections.Number(auto), "client_connections", l.Client.Connections,
			"network_connections", l.Network.Connections, "descriptors", descriptors)
	}
}
