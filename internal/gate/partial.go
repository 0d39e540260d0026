package gate

import (
	"path/filepath"

	"spamgate/internal/config"
	"spamgate/smtpfilter/partial"
)

// memoryName is the file in the state directory that records which recipients have which
// message.
const memoryName = "lmtp.partial"

// openMemory opens the record of delivered recipients if the next hop speaks LMTP. The record
// stays open if a reload brings another next hop, since clients may still retry.
func (g *gate) openMemory(c *config.Config) {
	if g.memory == nil && c.NextHop.LMTP() {
		g.memory = partial.Open(filepath.Join(c.State.Dir, memoryName), partial.Options{Logger: g.log})
	}
}
