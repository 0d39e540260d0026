package gate

import (
	"path/filepath"

	"spamgate/internal/config"
	"spamgate/smtpfilter/partial"
)

// memoryName is the file, in the state directory, of who has which message.
const memoryName = "lmtp.partial"

// openMemory begins to remember who has which message, if the next hop speaks LMTP.
// It then goes on to do so with any next hop, until nobody waits any more.
func (g *gate) openMemory(c *config.Config) {
	if g.memory == nil && c.NextHop.LMTP() {
		g.memory = partial.Open(filepath.Join(c.State.Dir, memoryName), partial.Options{Logger: g.log})
	}
}
