package listfiles

import (
	"fmt"

	"spamgate/blocklist"
	"spamgate/blocklist/listfile"
	"spamgate/blocklist/store"
	"spamgate/internal/config"
	"spamgate/internal/setup"
)

// Protection decides which valid entries the gate leaves out of the lists of a configuration.
type Protection struct{ names *store.Protected }

func NewProtection(c *config.Config) Protection {
	names, err := store.Protect(setup.Protected(c.Guard))
	if err != nil {
		panic(err) // the configuration was checked
	}
	return Protection{names}
}

// LeftOut returns why the gate leaves an entry of the list out; see [store.Omissions].
func (p Protection) LeftOut(l *List, e listfile.Entry) store.Omission {
	list := store.List{URL: l.URL, Rules: l.Rules}
	if l.Type == "allow" {
		list.Type = blocklist.Allow
	}
	return list.Omissions(p.names).Of(&e)
}

// Check refuses an entry that covers a protected name.
func (p Protection) Check(l *List, e listfile.Entry) error {
	why := p.LeftOut(l, e)
	switch {
	case why.Protected() == "":
		return nil
	case why.Entirely():
		return fmt.Errorf("%s would turn away all mail from %s, a protected name, so list %s would not take it; "+
			`list single addresses there, or set on_protected = "accept" for the list`, Written(e), why.Protected(), l.Name)
	}
	return fmt.Errorf("list %s would not take %s: %s; %s", l.Name, Written(e), why.What(), why.Hint())
}
