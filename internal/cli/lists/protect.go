package lists

import (
	"fmt"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
	"spamgate/internal/setup"
)

// protection knows which entries cover a protected name whole.
type protection map[string]string // from key to name

func newProtection(c *config.Config) protection {
	p := protection{}
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

// covered is the protected name that an entry of the list would cover whole, or
// "".
func (p protection) covered(l *listAt, e listfile.Entry) string {
	if l.Type != "block" || l.OnProtected == "accept" || e.Exception {
		return ""
	}
	return p[e.Key]
}

// check refuses an entry that covers a protected name.
func (p protection) check(l *listAt, e listfile.Entry) error {
	name := p.covered(l, e)
	if name == "" {
		return nil
	}
	return fmt.Errorf("%s would turn away all mail from %s, a protected name, so list %s would not take it; "+
		`list single addresses there, or set on_protected = "accept" for the list`, written(e), name, l.Name)
}
