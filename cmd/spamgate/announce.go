package main

import (
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/hashfamily"
	"spamgate/internal/config"
	"spamgate/internal/logging"
	"spamgate/internal/text"
)

// announce says what the gate has loaded, where it listens, where mail goes and
// what to try next: to people in a few lines, to programs in log records.
func (g *gate) announce() {
	stats := g.store.Set().Stats()
	var addrs []string
	for _, h := range g.held {
		addrs = append(addrs, h.listener.Addr().String())
	}
	if g.config.Log.Output == logging.OutputStderr && g.config.Log.Format == logging.FormatText {
		g.welcome(stats, addrs)
	} else {
		g.log.Info("listening", "addr", strings.Join(addrs, ","), "next_hop", g.next.String(), "hostname", g.config.Hostname)
		g.logState("loaded")
		g.logLimits()
	}
	g.warnDescriptors()
	if discards(g.config) {
		g.log.Warn("mail that a list with the action discard matches is accepted and dropped")
	}
	if stats.Warning != "" {
		g.log.Warn(stats.Warning)
	}
	if warning := unconfirmed(g.config, stats); warning != "" {
		g.log.Warn(warning)
	}
	g.logWarnings(g.config)
}

// logWarnings logs what is not as the configuration's author may think.
func (g *gate) logWarnings(c *config.Config) {
	for _, warning := range c.Warnings {
		g.log.Warn("configuration", "warning", warning.Error())
	}
}

// unconfirmed says what it means that the filter alone decides; empty where the
// lists confirm it.
func unconfirmed(c *config.Config, stats blocklist.SetStats) string {
	if c.Filter.Confirm {
		return ""
	}
	text := "confirm = false: the filter alone decides, and turns senders away that no list holds"
	if spec, err := hashfamily.ParseSpec(stats.Family); err == nil && !spec.Keyed() {
		text += fmt.Sprintf("; whoever gets a few names listed can choose them, since the family %s has no secret key (see spamgate hashes attack --help): "+
			`kind = "sized" with family = "double" has one`, stats.Family)
	}
	return text
}

func discards(c *config.Config) bool {
	for _, l := range c.Lists {
		if l.Action == "discard" || l.HeaderAction == "discard" {
			return true
		}
	}
	return false
}

// welcome is announce for people.
func (g *gate) welcome(stats blocklist.SetStats, addrs []string) {
	w := g.stderr
	fmt.Fprintf(w, "spamgate %s at %s\n", version, g.config.Hostname)
	printLists(w, stats)
	label := "listening"
	for _, e := range g.entrances {
		shown := addrs[:len(e.sockets)]
		addrs = addrs[len(e.sockets):]
		printParts(w, label, describeListener(e.config, shown))
		label = ""
	}
	printLimits(w, g.config)
	printNextHops(w, g.config)
	printMode(w, g.config)
	fmt.Fprintf(w, "  try        swaks -s %s%s -f spammer@example.com -t %s\n",
		reachable(g.held[0].listener.Addr().String()), swaksTLS[g.entrances[0].config.TLS], recipient(g.config))
	if path := editable(g.config); path != "" {
		fmt.Fprintf(w, "             echo 'offers.example  # reported three times' >> %s\n", shorten(path))
	}
	fmt.Fprintln(w, "             spamgate check ADDRESS   says what becomes of a sender, and why")
}

// recipient is one that the gate takes mail for.
func recipient(c *config.Config) string {
	domain := "example.net"
	if d := c.Policy.RecipientDomains; len(d) > 0 {
		domain = strings.TrimPrefix(d[0], ".")
	}
	return "you@" + domain
}

// swaksTLS is what swaks must be told of TLS, where mail cannot do without.
var swaksTLS = map[string]string{"required": " -tls", "implicit": " -tlsc"}

// describeListener is where a listener listens, the name that log and
// "check --listener" have for it, and what it has that not all have.
func describeListener(l config.Listener, addrs []string) []string {
	parts := slices.Clone(addrs)
	if l.Name != "listen" && !slices.Contains(l.Addr, l.Name) {
		parts[len(parts)-1] += " (" + l.Name + ")"
	}
	switch l.TLS {
	case "starttls":
		parts = append(parts, "STARTTLS")
	case "required":
		parts = append(parts, "STARTTLS required")
	case "implicit":
		parts = append(parts, "TLS")
	}
	if l.Auth == "pass" {
		parts = append(parts, "AUTH")
	}
	if len(l.Lists) > 0 {
		parts = append(parts, "lists "+strings.Join(l.Lists, " "))
	}
	return parts
}

// printNextHops is where mail goes.
func printNextHops(w io.Writer, c *config.Config) {
	var parts []string
	for _, addr := range c.NextHop.Addr {
		parts = append(parts, shorten(addr))
	}
	printParts(w, "next hop", parts)
}

// printParts writes what stands behind a label, with commas between. Where a part
// would go beyond 80 columns it begins another line.
func printParts(w io.Writer, label string, parts []string) {
	line := fmt.Sprintf("  %-10s ", label)
	for i, part := range parts {
		if i < len(parts)-1 {
			part += ","
		}
		if i > 0 && len(line)+len(" ")+len(part) > 80 {
			fmt.Fprintln(w, line)
			line = strings.Repeat(" ", 15) + part
			continue
		}
		if i > 0 {
			line += " "
		}
		line += part
	}
	fmt.Fprintln(w, line)
}

// printMode says that the lists only log, if they do.
func printMode(w io.Writer, c *config.Config) {
	if c.Policy.Mode == "monitor" {
		fmt.Fprintln(w, "  mode       monitor: no listed sender is turned away, every list only logs")
	}
}

// printLists is what is known of the lists and the filter.
func printLists(w io.Writer, stats blocklist.SetStats) {
	label := "lists"
	name := 0
	for _, l := range stats.Lists {
		name = max(name, len(l.Name))
	}
	for _, l := range stats.Lists {
		fmt.Fprintf(w, "  %-10s %-*s  %s, %s\n", label, name, l.Name, describeAction(l), describeEntries(l))
		label = ""
		if how := describeFormat(l); how != "" {
			fmt.Fprintf(w, "  %-10s %-*s  %s\n", "", name, "", how)
		}
	}
	fmt.Fprintf(w, "  filter     %s; %s\n", describeFilter(stats), describeRate(stats))
}

// describeFilter is the filter's kind, its hash family unless it is called the
// same, and its size or, where that follows from the lists, its number of hashes
// and memory.
func describeFilter(stats blocklist.SetStats) string {
	size := fmt.Sprintf("%.0f KiB", math.Ceil(float64(stats.FilterBytes)/(1<<10)))
	if stats.FilterBytes >= 1<<20 {
		size = fmt.Sprintf("%.1f MiB", float64(stats.FilterBytes)/(1<<20))
	}
	name := string(stats.Kind)
	if stats.Family != name && stats.Family != "classic" {
		name += ", " + stats.Family
	}
	switch stats.Kind {
	case blocklist.KindClassic, blocklist.KindSharded, blocklist.KindAuto:
		if stats.Shards > 1 {
			return fmt.Sprintf("%s, %d times 2^28 bits, %s", name, stats.Shards, size)
		}
		return name + ", 2^28 bits"
	case blocklist.KindFuse:
		return fmt.Sprintf("%s, %s", name, size)
	}
	return fmt.Sprintf("%s, %s, k %d, %s", stats.Kind, stats.Family, stats.Hashes, size)
}

// describeRate is how full the filter is, where that says something, and how often
// it errs.
func describeRate(stats blocklist.SetStats) string {
	fpr := fprText(stats.FPR)
	if stats.Kind == blocklist.KindFuse {
		return "expected FPR " + fpr
	}
	return fmt.Sprintf("fill ratio %.2g, expected FPR %s", stats.FillRatio, fpr)
}

// fprText is a rate at which a filter errs; it is never quite 0.
func fprText(fpr float64) string {
	if fpr < leastFPR {
		return fmt.Sprintf("< %.0g", leastFPR)
	}
	return fmt.Sprintf("%.2g", fpr)
}

// leastFPR is a rate below which nobody cares how far.
const leastFPR = 1e-18

// describeLeftOut counts the lines of a list that are not looked up, by why not.
func describeLeftOut(l blocklist.ListStats) []string {
	var parts []string
	for _, p := range []struct {
		n         int
		one, many string
	}{
		{l.Invalid, "invalid line", "invalid lines"},
		{l.Unsupported, "unsupported line", "unsupported lines"},
		{l.Protected, "protected name", "protected names"},
	} {
		if p.n > 0 {
			parts = append(parts, text.Count(p.n, p.one, p.many))
		}
	}
	return parts
}

// describeFormat is how a list's files were read; empty where they are all ours
// and as they are.
func describeFormat(l blocklist.ListStats) string {
	var how []string
	for _, f := range l.Files {
		text := string(f.Format)
		if f.Packed != "" {
			text += ", " + f.Packed
		}
		if text != string(listfile.Plain) && f.Format != "" && !slices.Contains(how, text) {
			how = append(how, text)
		}
	}
	if len(how) == 0 {
		return ""
	}
	return "read as " + strings.Join(how, "; ")
}

func describeAction(l blocklist.ListStats) string {
	if l.Type == blocklist.Allow {
		return "allow"
	}
	if l.HeaderAction != blocklist.Accept && l.HeaderAction != l.Action {
		return fmt.Sprintf("%s, in headers %s", l.Action, l.HeaderAction)
	}
	return l.Action.String()
}

// describeEntries is what a list has, and what was left out of its files.
func describeEntries(l blocklist.ListStats) string {
	parts := []string{text.Count(l.Entries, "entry", "entries")}
	if l.Expired > 0 {
		parts = append(parts, fmt.Sprintf("%d expired", l.Expired))
	}
	parts = append(parts, describeLeftOut(l)...)
	switch {
	case l.Err == nil:
	case l.LastGood && l.Held:
		parts = append(parts, "HELD")
	case l.LastGood:
		parts = append(parts, "NOT UP TO DATE")
	default:
		parts = append(parts, "NOT LOADED: "+l.Err.Error())
	}
	return strings.Join(parts, ", ")
}

// shorten shows a path below the working directory as one would type it.
func shorten(s string) string {
	dir, err := os.Getwd()
	if err != nil || dir == "/" {
		return s
	}
	scheme, path, ok := strings.Cut(s, ":")
	if !ok {
		scheme, path = "", s
	} else {
		scheme += ":"
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsAbs(path) && filepath.IsLocal(rel) {
		return scheme + rel
	}
	return s
}

// reachable is an address of the gate that a client on this machine can use.
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

// editable is the file of the first block list that is a single one, in our own
// format.
func editable(c *config.Config) string {
	for _, l := range c.Lists {
		if l.Type == "block" && l.Path != "" && l.Format == "plain" && !strings.ContainsAny(l.Path, `*?[\`) {
			return l.Path
		}
	}
	return ""
}
