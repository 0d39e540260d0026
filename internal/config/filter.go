package config

import (
	"fmt"
	"slices"
	"strings"
)

// hashes of the classic family, in its order.
var hashes = []string{"RS", "JS", "PJW", "ELF", "BKDR", "SDBM", "DJB", "DEK", "BP", "FNV", "AP"}

// filter checks [filter], whose confirm depends on the lists.
func (d *document) filter() {
	f := &d.cfg.Filter
	d.oneOf("filter.kind", f.Kind, "classic")
	d.family(f.Family)
	if f.Confirm {
		return
	}
	blocks := 0
	for i, l := range d.cfg.Lists {
		if l.Type == typeAllow {
			line, _ := d.at.find(element("list", i))
			d.fail("filter.confirm", fmt.Sprintf("false cannot be with an allow list (line %d): the filter alone does not know which list holds an entry", line),
				"write true, or remove the allow lists")
		}
		if l.Type == typeBlock {
			blocks++
		}
	}
	if blocks > 1 {
		d.fail("filter.confirm", fmt.Sprintf("false cannot be with %d block lists: the filter alone does not know which list holds an entry", blocks),
			"write true, or keep one list")
	}
}

// family checks "classic" or "classic:" with names of hashes.
func (d *document) family(spec string) {
	const path = "filter.family"
	known := `write "classic" for all of ` + strings.Join(hashes, ", ") + `, or a choice such as "classic:RS,JS,AP"`
	name, subset, chosen := strings.Cut(spec, ":")
	if name != "classic" {
		d.fail(path, fmt.Sprintf("%q is not known", spec), known)
		return
	}
	if !chosen {
		return
	}
	names := strings.Split(subset, ",")
	for i, h := range names {
		if !slices.Contains(hashes, h) {
			d.fail(path, fmt.Sprintf("there is no hash %q", h), known)
		} else if slices.Contains(names[:i], h) {
			d.fail(path, fmt.Sprintf("the hash %s is there twice", h), "remove one")
		}
	}
}
