package config

import (
	"fmt"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// Kinds of filters.
const (
	kindClassic  = "classic"
	kindSized    = "sized"
	kindCounting = "counting"
)

// maxEntries is the largest [filter] entries. How many fit in the largest bitmap
// hangs on family and rate, see size.
const maxEntries = 1_000_000_000

// filter checks [filter], whose confirm depends on the lists.
func (d *document) filter() {
	f := &d.cfg.Filter
	kindKnown := d.oneOf("filter.kind", f.Kind, kindClassic, kindSized, kindCounting)
	if !(f.FPR >= 1e-12 && f.FPR <= 0.5) { // not a number is out of range too
		d.fail("filter.fpr", fmt.Sprintf("%v is out of range", f.FPR), "write 1e-12 to 0.5, such as 1e-6")
	}
	d.within("filter.entries", f.Entries, 0, maxEntries)
	if f.CounterBits != 4 && f.CounterBits != 8 && f.CounterBits != 16 {
		d.fail("filter.counter_bits", fmt.Sprintf("%d is out of range", f.CounterBits), "write 4, 8 or 16")
	}
	d.family(f, kindKnown)
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

// family checks the family and, if the kind is one, that it goes with that.
func (d *document) family(f *Filter, kindKnown bool) {
	const path = "filter.family"
	if f.Kind != kindClassic && !d.at.has(path) {
		f.Family = "double"
	}
	spec, err := hashfamily.ParseSpec(f.Family)
	if err != nil {
		d.fail(path, err.Error(), `the kind "classic" takes the classic ones, "sized" and "counting" take all`)
		return
	}
	f.Family = spec.String()
	switch {
	case !kindKnown:
	case f.Kind == kindClassic:
		if !spec.Classic() {
			d.fail(path, fmt.Sprintf("%q does not go with the kind %q", f.Family, f.Kind),
				`write kind = "sized" or "counting", or a classic family: "classic", "classic9", or some of its hashes as in "classic:RS,JS,AP"`)
		}
	case !d.failed["filter.fpr"]:
		d.size(f, spec)
	}
}

// size checks that there is a filter of the family for so many entries.
func (d *document) size(f *Filter, spec hashfamily.Spec) {
	if _, _, err := bloom.Size(spec, 1, f.FPR); err != nil {
		d.fail("filter.fpr", err.Error(), fmt.Sprintf("write a higher rate, or another family than %q", spec))
	} else if d.failed["filter.entries"] {
		return
	} else if _, _, err := bloom.Size(spec, max(uint64(f.Entries), 1), f.FPR); err != nil {
		d.fail("filter.entries", err.Error(), "write fewer, or 0 for as many as the lists need")
	}
}
