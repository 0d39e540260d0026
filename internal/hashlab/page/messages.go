package page

import (
	"fmt"
	"math"
	"slices"

	"spamgate/internal/hashlab"
	"spamgate/internal/hashlab/format"
	"spamgate/internal/text"
)

func messagesSection(r *hashlab.Report) section {
	s := section{ID: "messages", Title: "False positives per message", About: "A message is looked up by several candidate keys of each of its senders. Its rate is the part of messages " +
		"of which at least one key is a false positive. The table also has the mean number of keys, and the rate that as many independent keys with the rate per key would give."}
	s.add(messagesPicture(r.Messages))
	s.Tables = append(s.Tables, table(numbers, []string{"subject", "corpus", "rate [95%]", "if independent", "k", "m", "n", "filters", "keys", "hits", "messages"}, r.Messages, func(f hashlab.MessageRow) []string {
		return []string{f.Name, f.Corpus, format.Interval(f.Rate, f.Hits), format.Rate(f.FromPerKey), fmt.Sprint(f.K), format.Bits(f.M), text.Number(f.N), fmt.Sprint(f.Filters),
			fmt.Sprintf("%.2f", f.KeysAMail), text.Number(f.Hits), text.Number(f.Messages)}
	}))
	return s
}

// messagesPicture draws how many times the rate per message is what the rate per
// key predicts.
func messagesPicture(rows []hashlab.MessageRow) (Picture, error) {
	label := func(f hashlab.MessageRow) string { return fmt.Sprintf("%s, k = %d", f.Name, f.K) }
	m := gather("Rate per message, in times of independent keys'", rows, func(f hashlab.MessageRow) (string, string, float64) {
		if f.Hits == 0 || f.FromPerKey == 0 {
			return label(f), f.Corpus, math.NaN()
		}
		return label(f), f.Corpus, f.Rate.Value / f.FromPerKey
	})
	for _, f := range rows {
		m.pale[slices.Index(m.rows, label(f))][slices.Index(m.columns, f.Corpus)] = f.Rate.Low <= f.FromPerKey && f.FromPerKey <= f.Rate.High
	}
	m.colour = byFactor
	return m.picture("messages", "The number is how many times the rate of independent keys was measured. Without colour: the 95% limits include 1.00, and the difference may be chance. "+
		"Blue is less: a message's keys are false positives together. Orange is more. An effect that the controls ideal and xxh3 show, too, is not due to the hashes.")
}
