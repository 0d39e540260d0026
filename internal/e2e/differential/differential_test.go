package differential

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"spamgate/blocklist/sender"
	"spamgate/internal/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

var (
	seedFlag    = flag.Uint64("seed", 1, "the `number` of the first message: the others follow")
	countFlag   = flag.Int("n", 500, "how `many` messages each server gets")
	serversFlag = flag.String("servers", "none", "mail `servers` behind the gate, with commas: "+strings.Join(slices.Sorted(maps.Keys(systems)), ", "))
	rawFlag     = flag.String("findings", "", "a `file` for the findings, one a line")
)

// batch is how many messages are sent before it is looked at what has arrived.
const batch = 250

// shown is how many findings are minimised and printed.
const shown = 20

// TestDifferential sends random headers through a gate and each mail server. No reader may
// see a listed sender in what arrives.
func TestDifferential(t *testing.T) {
	found := 0
	t.Cleanup(func() { // last of all, since servers that a failed test stops print their logs
		if found > 0 {
			t.Errorf("%d findings", found)
		}
	})
	r := startReaders(t)
	for _, name := range strings.Split(*serversFlag, ",") {
		s := startSystem(t, name)
		result := newResult()
		for from := 0; from < *countFlag; from += batch {
			var messages []string
			for i := from; i < min(from+batch, *countFlag); i++ {
				messages = append(messages, generate(*seedFlag+uint64(i)))
			}
			result.add(s.try(t, r, messages), *seedFlag+uint64(from))
		}
		result.report(t, name, func(messages []string) []outcome { return s.try(t, r, messages) })
		found += len(result.findings)
		if result.lost > 0 {
			t.Errorf("%s: %d messages that were accepted did not arrive", name, result.lost)
		}
	}
}

// An outcome is what became of a message.
type outcome struct {
	message string
	reply   string
	arrived string // "" if it did not
	listed  seen   // the listed senders that readers see in what arrived, or else in what was sent
}

func (o outcome) refused() bool { return o.reply[0] != '2' }

// isFinding reports whether a reader sees a listed sender in what has arrived.
func (o outcome) isFinding() bool { return o.arrived != "" && len(o.listed) > 0 }

// try sends messages and returns what became of them.
func (s *system) try(t testing.TB, r *readers, messages []string) []outcome {
	t.Helper()
	replies, arrived := s.deliver(t, messages)
	outcomes, texts := make([]outcome, len(messages)), make([]string, len(messages))
	for i, m := range messages {
		outcomes[i] = outcome{message: m, reply: replies[i], arrived: arrived[i]}
		if texts[i] = arrived[i]; texts[i] == "" {
			texts[i] = m + body(i)
		}
	}
	for i, by := range r.read(texts) {
		outcomes[i].listed = seen{}
		for reader, addresses := range by {
			for _, a := range addresses {
				if isListed(a) {
					outcomes[i].listed[reader] = append(outcomes[i].listed[reader], a)
				}
			}
		}
	}
	return outcomes
}

// isListed reports whether an address that a reader has found is in the list. Who looks at it
// sees no control and no format characters, and no space beside the "@" or in the domain. A
// byte after the domain that is no character may be shown as one (U+FFFD) or not at all.
func isListed(address string) bool {
	address = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ReplaceAll(strings.Trim(address, "<>"), "\t", " "))
	pos := strings.LastIndexByte(address, '@')
	if pos < 0 {
		return false
	}
	domain := strings.TrimSuffix(strings.ReplaceAll(address[pos+1:], " ", ""), "\ufffd")
	address = strings.Trim(address[:pos], " ") + "@" + domain
	a, err := sender.Parse(address)
	if err != nil {
		return strings.HasSuffix("."+strings.ToLower(domain), "."+listedDomain)
	}
	return a.Domain() == listedDomain || strings.HasSuffix(a.Domain(), "."+listedDomain) || a.String() == listedAddress
}

// A result is what became of all messages that went to a server.
type result struct {
	accepted, refused, lost int
	others                  map[string]int // replies that are not 2xx or 5xx
	inRefused               map[string]int // refused messages with a listed sender, by reader
	findings                []outcome
	seeds                   []uint64
}

func newResult() *result { return &result{others: map[string]int{}, inRefused: map[string]int{}} }

// add adds outcomes, the first of which has a seed.
func (r *result) add(outcomes []outcome, seed uint64) {
	for i, o := range outcomes {
		switch {
		case o.isFinding():
			r.findings, r.seeds = append(r.findings, o), append(r.seeds, seed+uint64(i))
			fallthrough
		case !o.refused():
			r.accepted++
		default:
			r.refused++
			for reader := range o.listed {
				r.inRefused[reader]++
			}
		}
		if !o.refused() && o.arrived == "" {
			r.lost++
		}
		if o.refused() && o.reply[0] != '5' {
			r.others[fmt.Sprintf("%.60q, such as -seed %d", o.reply, seed+uint64(i))]++
		}
	}
}

// report prints a result, with the findings minimised.
func (r *result) report(t *testing.T, server string, try func(messages []string) []outcome) {
	fmt.Printf("%s: seed %d, %d messages: %d accepted, %d refused; %d accepted ones did not arrive\n",
		server, *seedFlag, r.accepted+r.refused, r.accepted, r.refused, r.lost)
	for _, reader := range slices.Sorted(maps.Keys(r.inRefused)) {
		fmt.Printf("  %s: listed senders in %d refused messages\n", reader, r.inRefused[reader])
	}
	for _, reply := range slices.Sorted(maps.Keys(r.others)) {
		fmt.Printf("  %d times %q\n", r.others[reply], reply)
	}
	fmt.Printf("  %d findings\n", len(r.findings))
	known := map[string]bool{}
	for i, o := range r.findings {
		if len(known) == shown {
			break
		}
		least := minimise(o, try)
		text := fmt.Sprintf("%q", strings.TrimSuffix(least.message, "\r\n"))
		if known[text] {
			continue
		}
		known[text] = true
		var by []string
		for _, reader := range slices.Sorted(maps.Keys(least.listed)) {
			by = append(by, fmt.Sprintf("%s sees %.200q", reader, least.listed[reader]))
		}
		fmt.Printf("-seed %d -n 1 -servers %s: %s\n    %s\n", r.seeds[i], server, brief(text), strings.Join(by, ", "))
		if *rawFlag != "" {
			writeFinding(t, text+"\t"+server+"\t"+strings.Join(by, ", "))
		}
	}
}

// brief returns a text without its middle.
func brief(s string) string {
	if len(s) > 600 {
		return s[:250] + "…" + s[len(s)-250:]
	}
	return s
}

func writeFinding(t *testing.T, line string) {
	f, err := os.OpenFile(*rawFlag, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, line); err != nil {
		t.Fatal(err)
	}
}
