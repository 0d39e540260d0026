// Package report describes the lists, the filter and the gate in the words that the
// daemon and the commands share.
package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/verdict"
	"spamgate/hashfamily"
	"spamgate/internal/config"
	"spamgate/internal/recipients"
	"spamgate/internal/setup"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// Unconfirmed returns a warning if the filter alone decides, or "" if the lists confirm it.
func Unconfirmed(c *config.Config, stats blocklist.SetStats) string {
	if c.Filter.Confirm {
		return ""
	}
	text := "confirm = false: the filter alone decides, and turns senders away that no list holds"
	if spec, err := hashfamily.ParseSpec(stats.Family); err == nil && !spec.Keyed() {
		text += fmt.Sprintf("; whoever gets a few names listed can choose them, since the family %s has no secret key (see docs/hash-families.md): "+
			`kind = "sized" with family = "double" has one`, stats.Family)
	}
	return text
}

// Discards reports whether the configuration drops mail.
func Discards(c *config.Config) bool {
	for _, l := range c.Lists {
		if verdict.ActionOf(l.Action).Drops() || verdict.ActionOf(l.HeaderAction).Drops() {
			return true
		}
	}
	return slices.ContainsFunc(c.RecipientPolicies, func(p config.RecipientPolicy) bool { return verdict.ActionOf(p.MaxAction).Drops() })
}

// DescribeListener returns a listener's addresses, its name in the log and for "check
// --listener", and its special settings.
func DescribeListener(l config.Listener, addrs []string) []string {
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
	if l.Auth == config.AuthRequire {
		parts = append(parts, "AUTH required")
	} else if l.Logins() {
		parts = append(parts, "AUTH")
	}
	if len(l.Lists) > 0 {
		parts = append(parts, "lists "+strings.Join(l.Lists, " "))
	}
	return parts
}

// DescribeDoor returns what a door is, where, and its special settings.
func DescribeDoor(c *config.Config, d config.Door) []string {
	addr := d.Addr
	if path, ok := d.Unix(); ok {
		addr = "unix:" + term.ShortPath(path)
	}
	if d.Name != d.Addr {
		addr += " (" + d.Name + ")"
	}
	parts := []string{map[string]string{
		config.TablePolicyService: "policy service",
		config.TableMilter:        "milter",
		config.TableDNSServer:     "DNS",
	}[d.Table] + " at " + addr}
	if d.Table == config.TableDNSServer {
		if d.Zone != "" {
			parts = append(parts, "zone "+d.Zone)
		}
		if d.HashedZone != "" {
			parts = append(parts, "hashed zone "+d.HashedZone)
		}
	}
	if len(d.Lists) > 0 {
		parts = append(parts, "lists "+strings.Join(d.Lists, " "))
	}
	return parts
}

// PrintDoors prints the doors.
func PrintDoors(w io.Writer, c *config.Config) {
	label := "doors"
	for _, d := range c.Doors {
		term.PrintParts(w, label, DescribeDoor(c, d))
		label = ""
	}
}

// PrintConsole prints where the console is, if there is one. Listening is the address of its
// socket.
func PrintConsole(w io.Writer, c *config.Config, listening string) {
	if c.Console.Addr == "" {
		return
	}
	parts := []string{c.Console.Base(listening).String()}
	if path, ok := c.Console.Unix(); ok {
		parts = append(parts, "through "+path)
	}
	term.PrintParts(w, "console", parts)
}

// PrintPublish prints which lists others can fetch, and where. Listening is the address of the
// socket.
func PrintPublish(w io.Writer, c *config.Config, listening string) {
	if c.Publish.Addr == "" {
		return
	}
	scheme := "http"
	if len(c.Publish.TLSCert) > 0 {
		scheme = "https"
	}
	var parts []string
	for _, l := range c.Lists {
		if l.Publish {
			parts = append(parts, scheme+"://"+listening+"/"+l.Name+".txt")
		}
	}
	term.PrintParts(w, "published", parts)
}

// PrintNextHops prints where mail goes, with the listeners if that is not the same for all.
func PrintNextHops(w io.Writer, c *config.Config) {
	hops := c.Hops()
	label := "next hop"
	for _, h := range hops {
		var parts []string
		for _, addr := range h.Addr {
			parts = append(parts, term.ShortPath(addr))
		}
		if len(hops) > 1 {
			var names []string
			for _, i := range h.Listeners {
				names = append(names, c.Listeners[i].Name)
			}
			parts[len(parts)-1] += " (" + strings.Join(names, " ") + ")"
		}
		term.PrintParts(w, label, parts)
		label = ""
	}
}

// PrintRecipients prints a line for each file with recipients.
func PrintRecipients(w io.Writer, files []*recipients.File) {
	label := "recipients"
	for _, f := range files {
		s := f.Status()
		parts := []string{describeRecipients(s) + " from " + term.ShortPath(s.Path)}
		if s.Invalid > 0 {
			parts = append(parts, text.Count(s.Invalid, "invalid line", "invalid lines"))
		}
		if s.Err != nil {
			parts = append(parts, "HELD")
		}
		term.PrintParts(w, label, parts)
		label = ""
	}
}

// PrintPolicies prints a line for each recipient policy: for whom it is, and what it says.
func PrintPolicies(w io.Writer, c *config.Config) {
	label := "policies"
	for _, p := range c.RecipientPolicies {
		who := strings.Join(p.Match, " ")
		if path, ok := p.File(); ok {
			who = "those in " + term.ShortPath(path)
		} else if n := len(p.Match); n > 3 {
			who = fmt.Sprintf("%s and %d more", strings.Join(p.Match[:3], " "), n-3)
		}
		parts := []string{p.Name + ": " + who}
		if p.Exempt {
			parts = append(parts, "exempt")
		}
		if len(p.Lists) > 0 {
			parts = append(parts, "only "+text.Count(len(p.Lists), "list", "lists")+": "+strings.Join(p.Lists, " "))
		}
		if p.MaxAction != "" {
			parts = append(parts, "at most "+p.MaxAction)
		}
		if p.Mode == "monitor" {
			parts = append(parts, "monitor")
		}
		term.PrintParts(w, label, parts)
		label = ""
	}
}

func describeRecipients(s recipients.Status) string {
	switch s.Kind {
	case recipients.RecipientDomains:
		return text.Count(s.Entries, "domain", "domains")
	case recipients.RecipientPolicy:
		return s.Policy + ": " + text.Count(s.Entries, "entry", "entries")
	}
	return text.Count(s.Entries, "address", "addresses")
}

// PrintMode prints a line if the lists turn nobody away. Questions over DNS are not logged.
func PrintMode(w io.Writer, c *config.Config) {
	if c.Policy.Mode != "monitor" {
		return
	}
	lines := []string{"monitor: no listed sender is turned away", "every list only logs"}
	if c.OnlyDNS() {
		lines = []string{`monitor: over DNS no sender is listed`, `"spamgate lists status" counts the hits`}
	}
	term.PrintParts(w, "mode", lines)
}

// PrintLists prints the lists and the filter.
func PrintLists(w io.Writer, stats blocklist.SetStats) {
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
	fmt.Fprintf(w, "  filter     %s; %s\n", DescribeFilter(stats), DescribeRate(stats))
}

// DescribeFilter returns the filter's kind, its hash family unless that has the same name,
// and its size. For kinds whose size depends on the lists it adds the number of hashes.
func DescribeFilter(stats blocklist.SetStats) string {
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

// DescribeRate returns the filter's expected false positive rate and, for kinds that have
// one, its fill ratio.
func DescribeRate(stats blocklist.SetStats) string {
	fpr := describeFPR(stats)
	if stats.Kind == blocklist.KindFuse {
		return "expected FPR " + fpr
	}
	return fmt.Sprintf("fill ratio %.2g, expected FPR %s", stats.FillRatio, fpr)
}

// describeFPR returns the expected false positive rate. Where it depends on what the
// entries look like it is measured, and "at most" if no probe passed.
func describeFPR(stats blocklist.SetStats) string {
	worst := blocklist.Worst(stats.Similar)
	switch {
	case stats.Unprobed && math.IsNaN(stats.FPR):
		return "not predicted"
	case stats.Unprobed:
		return term.FPR(stats.FPR) + " by the formula"
	case worst.Probes > 0 && worst.False == 0 && stats.FPR != stats.ComputedFPR:
		return "up to " + term.FPR(stats.FPR)
	}
	return term.FPR(stats.FPR)
}

// describeLeftOut counts the lines of a list that are not looked up, by reason.
func describeLeftOut(l blocklist.ListStats) []string {
	var parts []string
	for _, p := range []struct {
		n          int
		item, many string
	}{
		{l.Invalid, "invalid line", "invalid lines"},
		{l.Unsupported, "unsupported line", "unsupported lines"},
		{l.Protected, "protected name", "protected names"},
		{l.Disallowed, "disallowed entry", "disallowed entries"},
	} {
		if p.n > 0 {
			parts = append(parts, text.Count(p.n, p.item, p.many))
		}
	}
	return parts
}

// describeFormat returns the formats of a list's files, or "" if all are plain.
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
	text := l.Action.String()
	switch {
	case l.ProvenBy != 0:
		text = "allow if proven by " + strings.ReplaceAll(l.ProvenBy.String(), ",", " or ")
	case l.Type == blocklist.Allow:
		text = "allow"
	case l.HeaderAction != verdict.Accept && l.HeaderAction != l.Action:
		text = fmt.Sprintf("%s, in headers %s", l.Action, l.HeaderAction)
	}
	if l.PerRecipient {
		text += ", by recipient"
	}
	return text
}

// describeEntries counts a list's entries and the lines that were left out.
func describeEntries(l blocklist.ListStats) string {
	if l.Zone != "" {
		return "asked in DNS: " + l.Zone
	}
	parts := []string{text.Count(l.Entries, "entry", "entries")}
	if l.Expired > 0 {
		parts = append(parts, fmt.Sprintf("%d expired", l.Expired))
	}
	parts = append(parts, describeLeftOut(l)...)
	if l.Pinned != nil {
		parts = append(parts, "PINNED")
	}
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

// PrintLimits prints the limits on connections, in one line if all listeners and doors have
// the same.
func PrintLimits(w io.Writer, c *config.Config) {
	auto := setup.AutoConnections(c, setup.DescriptorLimit())
	number := func(n int64) string {
		if n == 0 {
			return "any number"
		}
		return strconv.FormatInt(n, 10)
	}
	var lines, names []string
	for _, l := range c.Listeners {
		lines = append(lines, fmt.Sprintf("%s connections, %s from one client", number(int64(l.MaxConnections.Number(auto))), number(int64(l.Client.Connections))))
		names = append(names, l.Name)
	}
	for _, d := range c.Doors {
		lines = append(lines, number(int64(d.MaxConnections.Number(auto)))+" connections")
		names = append(names, d.Name)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(lines)))) == 1 {
		term.PrintParts(w, "limits", lines[:1])
		return
	}
	label := "limits"
	for i, line := range lines {
		term.PrintParts(w, label, []string{line + " (" + names[i] + ")"})
		label = ""
	}
}
