package config

import (
	"fmt"

	"spamgate/blocklist/bloom"
	"spamgate/hashfamily"
)

// Kinds of filters that have rules of their own.
const (
	kindSized    = "sized"
	kindCounting = "counting"
	kindFuse     = "fuse"
)

// minFuseFPR is the false positive rate of fingerprints of 32 bits.
const minFuseFPR = 1.0 / (1 << 32)

// filter checks [filter]; confirm depends on the lists.
func (d *document) filter() {
	f := &d.cfg.Filter
	if !(f.FPR >= 1e-12 && f.FPR <= 0.5) { // also true for NaN
		d.fail("filter.fpr", fmt.Sprintf("%v is out of range", f.FPR), "write 1e-12 to 0.5, such as 1e-6")
	}
	if f.CounterBits != 4 && f.CounterBits != 8 && f.CounterBits != 16 {
		d.fail("filter.counter_bits", fmt.Sprintf("%d is out of range", f.CounterBits), "write 4, 8 or 16")
	}
	d.family(f)
	if f.Confirm {
		return
	}
	const path, reason = "filter.confirm", ": the filter alone does not know which list holds an entry"
	if !d.pos.has("policy.unwrap") {
		d.cfg.Policy.Unwrap = nil
	} else if len(d.cfg.Policy.Unwrap) > 0 {
		line, _ := d.pos.find("policy.unwrap")
		d.fail(path, fmt.Sprintf("cannot be false with unwrap (line %d)", line)+reason, "write true, or unwrap = []")
	}
	if len(d.cfg.RecipientPolicies) > 0 {
		line, _ := d.pos.find(element(TableRecipientPolicy, 0))
		d.fail(path, fmt.Sprintf("cannot be false with a [[recipient_policy]] (line %d)", line)+reason, "write true, or remove the policies")
	}
	blocks := 0
	for i, l := range d.cfg.Lists {
		if l.PerRecipient {
			line, _ := d.pos.find(element("list", i) + ".per_recipient")
			d.fail(path, fmt.Sprintf("cannot be false with per_recipient (line %d)", line)+reason, "write true, or remove that list")
		}
		if l.Type == typeAllow {
			line, _ := d.pos.find(element("list", i))
			d.fail(path, fmt.Sprintf("cannot be false with an allow list (line %d)", line)+reason, "write true, or remove the allow lists")
		}
		if l.InDNS() {
			line, _ := d.pos.find(element("list", i))
			d.fail(path, fmt.Sprintf("cannot be false with a list in DNS (line %d)", line)+reason, "write true, or remove the lists in DNS")
		}
		if l.Type == typeBlock {
			blocks++
		}
	}
	if blocks > 1 {
		d.fail(path, fmt.Sprintf("cannot be false with %d block lists", blocks)+reason, "write true, or keep one list")
	}
}

// familyHint says which families go with which kinds.
const familyHint = `the kinds "classic", "sharded" and "auto" accept the classic families, "sized" and "counting" all families, "fuse" none`

// family checks the family, and whether it goes with the kind.
func (d *document) family(f *Filter) {
	const path = "filter.family"
	sized := f.Kind == kindSized || f.Kind == kindCounting
	if !d.pos.has(path) {
		switch {
		case sized:
			f.Family = "double"
		case f.Kind == kindFuse:
			f.Family = ""
		}
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
	switch {
	case spec.Textbook():
		d.fail(path, fmt.Sprintf("%q serves only to compare in the laboratory: it misses every low rate", f.Family), `write "double"`)
	case d.failed["filter.kind"]:
	case !sized && !spec.Classic():
		d.fail(path, fmt.Sprintf("%q does not go with the kind %q", f.Family, f.Kind),
			`write kind = "sized" or "counting", or a classic family: "classic", "classic9", or some of its hashes as in "classic:RS,JS,AP"`)
	case sized && !d.failed["filter.fpr"]:
		d.size(f, spec)
	}
}

// fuse checks a filter of fingerprints, which has no choice of hashes.
func (d *document) fuse(f *Filter) {
	if f.Family != "" {
		d.fail("filter.family", fmt.Sprintf("%q does not go with the kind %q, which has its own hash", f.Family, f.Kind),
			"remove the line, or write another kind: "+familyHint)
	}
	if f.FPR < minFuseFPR && !d.failed["filter.fpr"] {
		d.fail("filter.fpr", fmt.Sprintf("%v is below the least rate of the kind %q", f.FPR, f.Kind), `write 2.4e-10 or more, or kind = "sized"`)
	}
}

// size checks whether a filter of the family can hold that many entries. A family whose
// rate depends on what the names look like is accepted with a warning.
func (d *document) size(f *Filter, spec hashfamily.Spec) {
	d.fits(f, spec)
	if !spec.AnyKeys() && !d.failed["filter.fpr"] {
		d.warn("filter.fpr", fmt.Sprintf("%v cannot be promised with the family %q: names that resemble the entries pass more often", f.FPR, spec),
			`write family = "double" or "digest", which have the rate for any names, or see what "spamgate lists status --detail" measures`)
	}
}

// fits checks whether a filter of the family can hold that many entries.
func (d *document) fits(f *Filter, spec hashfamily.Spec) {
	if _, _, err := bloom.Size(spec, 1, f.FPR); err != nil {
		d.fail("filter.fpr", err.Error(), fmt.Sprintf("write a higher rate, or another family than %q", spec))
	} else if d.failed["filter.entries"] {
		return
	} else if _, _, err := bloom.Size(spec, max(uint64(f.Entries), 1), f.FPR); err != nil {
		d.fail("filter.entries", err.Error(), "write a smaller number, or 0 for as many as the lists need")
	}
}
