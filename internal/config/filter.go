package config

import (
	"fmt"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// Kinds of filters.
const (
	kindClassic  = "classic"
	kindSharded  = "sharded"
	kindSized    = "sized"
	kindCounting = "counting"
	kindFuse     = "fuse"
	kindAuto     = "auto"
)

// minFuseFPR is what fingerprints of 32 bits let through.
const minFuseFPR = 1.0 / (1 << 32)

// maxEntries is the largest [filter] entries, which only shards are enough for.
// How many fit in the largest bitmap hangs on family and rate, see size.
const maxEntries = 10_000_000_000

// filter checks [filter], whose confirm depends on the lists.
func (d *document) filter() {
	f := &d.cfg.Filter
	kindKnown := d.oneOf("filter.kind", f.Kind, kindClassic, kindSharded, kindSized, kindCounting, kindFuse, kindAuto)
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

// familyHint says which families go with which kinds.
const familyHint = `the kinds "classic", "sharded" and "auto" take the classic ones, "sized" and "counting" take all, "fuse" takes none`

// family checks the family and, if the kind is one, that it goes with that.
func (d *document) family(f *Filter, kindKnown bool) {
	const path = "filter.family"
	if !d.at.has(path) {
		f.Family = defaultFamily(f.Kind)
	}
	if f.Kind == kindFuse {
		d.fuse(f)
		return
	}
	spec, err := hashfamily.ParseSpec(f.Family)
	if err != nil {
		d.fail(path, err.Error(), familyHint)
		return
	}
	f.Family = spec.String()
	sized := f.Kind == kindSized || f.Kind == kindCounting
	switch {
	case !kindKnown:
	case !sized && !spec.Classic():
		d.fail(path, fmt.Sprintf("%q does not go with the kind %q", f.Family, f.Kind),
			`write kind = "sized" or "counting", or a classic family: "classic", "classic9", or some of its hashes as in "classic:RS,JS,AP"`)
	case sized && !d.failed["filter.fpr"]:
		d.size(f, spec)
	}
}

// defaultFamily is the family of a kind where the file is silent.
func defaultFamily(kind string) string {
	switch kind {
	case kindSized, kindCounting:
		return "double"
	case kindFuse:
		return ""
	}
	return "classic"
}

// fuse checks a filter of fingerprints, which has no hashes to choose.
func (d *document) fuse(f *Filter) {
	if f.Family != "" {
		d.fail("filter.family", fmt.Sprintf("%q does not go with the kind %q, which has its own hash", f.Family, f.Kind),
			"remove the line, or write another kind: "+familyHint)
	}
	if f.FPR < minFuseFPR && !d.failed["filter.fpr"] {
		d.fail("filter.fpr", fmt.Sprintf("%v is less than the kind %q can do", f.FPR, f.Kind), `write 2.4e-10 or more, or kind = "sized"`)
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
