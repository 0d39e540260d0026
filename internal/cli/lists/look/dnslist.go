package look

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"spamgate/internal/admin"
	"spamgate/internal/cli/lists/session"
	"spamgate/internal/term"
	"spamgate/internal/text"
)

// printDNSList prints the lines of a list in DNS in the table of lists.
func printDNSList(w io.Writer, name string, d *admin.DNSList) {
	fmt.Fprintf(w, listColumns, name, "dns", "-", "-", "-", "-", "-", "-")
	message := "asked at " + d.Zone
	if d.State != "" {
		message += fmt.Sprintf("; listed %s, not listed %s, no answer %s",
			text.Number(d.Listed), text.Number(d.NotListed), text.Number(unknown(d)))
	}
	term.PrintWrapped(w, "  ", message)
}

// printDNSTrouble prints why a list in DNS is not asked, or may not work as it should.
func printDNSTrouble(w io.Writer, d *admin.DNSList) {
	since := ""
	if d.Since != nil {
		since = " since " + d.Since.Local().Format("2006-01-02 15:04")
	}
	switch d.State {
	case "off":
		term.PrintWrapped(w, "  OFF"+since+": ", d.Reason)
	case "broken":
		term.PrintWrapped(w, "  NOT ASKED"+since+": ", d.Reason)
	}
	if d.Warning != "" {
		term.PrintWrapped(w, "  warning: ", d.Warning)
	}
}

// printDNSDetails prints all there is to know of a list in DNS.
func printDNSDetails(line func(label, format string, args ...any), d *admin.DNSList) {
	line("zone", "%s", d.Zone)
	if d.State == "" {
		return
	}
	line("state", "%s", d.State)
	if d.Checked != nil {
		line("checked", "%s", session.Clock(*d.Checked))
	}
	if d.NextCheck != nil {
		line("next check", "%s", session.Clock(*d.NextCheck))
	}
	line("questions", "%s, and %s answered from the cache", text.Number(d.Questions), text.Number(d.CacheHits))
	line("domains", "%s listed, %s not listed, %s without an answer", text.Number(d.Listed), text.Number(d.NotListed), text.Number(unknown(d)))
	var causes []string
	for _, cause := range slices.Sorted(maps.Keys(d.Unknown)) {
		if n := d.Unknown[cause]; n > 0 {
			causes = append(causes, fmt.Sprintf("%s %s", cause, text.Number(n)))
		}
	}
	if causes != nil {
		line("no answer", "%s", strings.Join(causes, ", "))
	}
}

// unknown returns about how many domains a list in DNS said nothing.
func unknown(d *admin.DNSList) (n uint64) {
	for _, count := range d.Unknown {
		n += count
	}
	return n
}
