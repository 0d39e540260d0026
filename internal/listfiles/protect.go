package listfiles

import (
	"fmt"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/setup"
)

// Protection finds entries that cover a protected name entirely. It maps their keys to
// the name.
type Protection map[string]string // from key to name

func NewProtection(c *config.Config) Protection {
	p := Protection{}
	for _, name := range setup.Protected(c.Guard) {
		at := "@" + name
		for _, key := range append(listedit.Covering(at, sender.KindAtDomain), at) {
			if _, ok := p[key]; !ok {
				p[key] = name
			}
		}
	}
	return p
}

// Covered returns the protected name that an entry of the list would cover entirely, or "".
func (p Protection) Covered(l *List, e listfile.Entry) string {
	if l.Type != "block" || l.OnProtected == "accept" || e.Exception {
		return ""
	}
	return p[e.Key]
}

// Check refuses an entry that covers a protected name.
func (p Protection) Check(l *List, e listfile.Entry) error {
	name := p.Covered(l, e)
	if name == "" {
		return nil
	}
	return fmt.Errorf("%s would turn away all mail from %s, a protected name, so list %s would not take it; "+
		`list single addresses there, or set on_protected = "accept" for the list`, Written(e), name, l.Name)
}
