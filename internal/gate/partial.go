package gate

import (
	"path/filepath"
	"slices"
	"strings"

	"spamgate/internal/config"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/partial"
)

// memoryName is the file in the state directory that records which recipients have which
// message.
const memoryName = "lmtp.partial"

// openMemory opens the record of delivered recipients if a next hop speaks LMTP. The record
// stays open if a reload brings another next hop, since clients may still retry.
func (g *gate) openMemory(c *config.Config) {
	lmtp := slices.ContainsFunc(c.Hops(), func(h config.Hop) bool { return h.LMTP() })
	if g.memory == nil && lmtp {
		g.memory = partial.Open(filepath.Join(c.State.Dir, memoryName), partial.Options{Logger: g.log})
	}
}

// memoryOf returns the record for a next hop. Next hops with other servers than [next_hop]
// have entries of their own: a recipient who has a message there does not have it here.
func memoryOf(all *partial.Store, c *config.Config, n config.NextHop) smtpfilter.Memory {
	if slices.Equal(n.Addr, c.NextHop.Addr) {
		return all
	}
	return hopMemory{all, strings.Join(n.Addr, " ") + "\n"}
}

// hopMemory is the part of a record that belongs to one next hop. Its reverse-paths begin
// with the next hop's addresses, which no reverse-path can contain.
type hopMemory struct {
	all *partial.Store
	hop string
}

// Recall implements smtpfilter.Memory.
func (m hopMemory) Recall(from, to string) []partial.Entry { return m.all.Recall(m.hop+from, to) }

// Turn implements smtpfilter.Memory.
func (m hopMemory) Turn(from, to string) bool { return m.all.Turn(m.hop+from, to) }

// Knows implements smtpfilter.Memory.
func (m hopMemory) Knows(sum partial.Sum) bool { return m.all.Knows(sum) }

// Settle implements smtpfilter.Memory.
func (m hopMemory) Settle(from string, sum partial.Sum, outcomes []partial.Outcome) error {
	return m.all.Settle(m.hop+from, sum, outcomes)
}
