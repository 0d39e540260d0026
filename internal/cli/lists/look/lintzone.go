package look

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
	"spamgate/internal/cli/lists/session"
)

// zoneNames are the names of a response policy zone, also those that have no record
// but names below them. A resolver's wildcard covers neither such a name nor what is
// below it (RFC 4592, section 3.3.1). A list's *.example.com covers both.
type zoneNames map[string]zoneName

// zoneName is what a zone says about a name and about the names below it.
type zoneName struct {
	first  listfile.Entry // the first entry with this name or one below it
	blocks int            // line of the wildcard that blocks the names below; 0 means none
	alone  bool           // a record decides about the name
	below  bool           // a record decides about the names below
}

// add adds the name of an entry, and those above it.
func (z *zoneNames) add(e listfile.Entry) {
	if *z == nil {
		*z = zoneNames{}
	}
	if len(*z) >= maxRepeats {
		return
	}
	name := strings.TrimPrefix(strings.TrimPrefix(e.Key, "@"), "*.")
	n, known := (*z)[name]
	if !known {
		n.first = e
	}
	n.alone = n.alone || e.Kind != sender.KindSubdomains
	if e.Kind != sender.KindAtDomain {
		n.below = true
		if !e.Exception && n.blocks == 0 {
			n.blocks = e.Line
		}
	}
	(*z)[name] = n
	for !known {
		_, above, ok := strings.Cut(name, ".")
		if !ok {
			return
		}
		name = above
		if _, known = (*z)[name]; !known {
			(*z)[name] = zoneName{first: e}
		}
	}
}

// warnings returns a warning for each name to which a resolver does not apply the
// wildcard above it, and the gate does.
func (z zoneNames) warnings() []session.ProblemAt {
	var found []session.ProblemAt
	for name, n := range z {
		_, above, _ := strings.Cut(name, ".")
		if z[above].blocks == 0 || n.alone && n.below {
			continue
		}
		what, records := name+" and the names below it", name+" and *."+name
		switch {
		case n.alone:
			what, records = "the names below "+name, "*."+name
		case n.below:
			what, records = name, name
		}
		found = append(found, session.Warning(n.first,
			fmt.Sprintf("because of this record a resolver does not apply *.%s of line %d to %s; the gate does", above, z[above].blocks, what),
			fmt.Sprintf("add records for %s that block or let through", records)))
	}
	slices.SortFunc(found, func(p, q session.ProblemAt) int {
		return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.What, q.What))
	})
	return found
}
