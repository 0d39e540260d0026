package check

import (
	"cmp"
	"net/netip"
	"slices"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
	"spamgate/internal/decisions"
	"spamgate/internal/logging"
)

// PastQuestions returns the questions what would happen now to the senders that the history shows
// in decisions, each once for a listener: at most so many senders, with at most so many recipients.
func PastQuestions(all []decisions.Decision, senders, recipients int) (questions []Question) {
	for i := range all {
		d := &all[i]
		add := func(address string, inHeader bool) {
			if address != nullSender {
				parsed, err := sender.Parse(address)
				if err != nil || parsed.Domain() == "" || logging.Hidden(address) {
					return
				}
				address = parsed.String()
			}
			pos := slices.IndexFunc(questions, func(q Question) bool { return q.Listener == d.Listener && q.Address == address })
			if pos < 0 {
				if len(questions) == senders {
					return
				}
				pos = len(questions)
				questions = append(questions, Question{Listener: d.Listener, Address: address, InHeader: inHeader, Helo: d.Helo, Past: true})
				if client, err := netip.ParseAddrPort(d.Client); err == nil {
					questions[pos].Client = client.Addr().Unmap()
				} else {
					questions[pos].Client, _ = netip.ParseAddr(d.Client) // a door may not know the port
				}
			}
			q := &questions[pos]
			q.InHeader = q.InHeader && inHeader
			for _, to := range d.Recipients {
				if len(q.Recipients) < recipients && !slices.Contains(q.Recipients, to) && !logging.Hidden(to) {
					q.Recipients = append(q.Recipients, to)
				}
			}
		}
		add(d.Sender, false)
		// The sender within an address is judged by way of it.
		identity := d.Attr("identity")
		add(cmp.Or(d.Attr("by_way_of"), d.Attr("sender")), identity != "" && identity != verdict.EnvelopeIdentity)
		for _, s := range d.HeaderSenders {
			add(s, true)
		}
	}
	return questions
}
