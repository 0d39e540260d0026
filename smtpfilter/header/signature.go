package header

import (
	"bytes"
	"errors"
	"iter"
	"strings"
	"unicode"

	"spamgate/blocklist/sender"
	"spamgate/blocklist/verdict"
)

// SignatureField is a DKIM-Signature field (RFC 6376, section 3.5) of a header section.
type SignatureField struct {
	// Signature is pending, or not proven if its tags are malformed.
	verdict.Signature

	Start, End int // where the field stands in the section, with its line end
	Names      int // of the header fields that it covers (h=)
}

// Signatures returns the first [verdict.MaxSignatures] DKIM signatures of a header section,
// and how many From fields there are. A field counts as From if some reader may take it for
// one.
func Signatures(section []byte) (signatures []verdict.Signature, fromFields int) {
	for _, f := range SignatureFields(section) {
		signatures = append(signatures, f.Signature)
	}
	return signatures, countFrom(section)
}

// countFrom counts the From fields. White space of any alphabet around the name counts as
// none, because verifiers of signatures think so too. A malformed line after a From field is
// one more: some readers take it for a part of the field, and its signature does not.
func countFrom(section []byte) (n int) {
	for s := (splitter{rest: section}); s.next(); {
		if isName(s.name, "From") {
			n++
		}
	}
	return n
}

// SignatureFields returns the first [verdict.MaxSignatures] DKIM-Signature fields.
func SignatureFields(section []byte) (found []SignatureField) {
	for start, end := range Fields(section) {
		name, value, _ := bytes.Cut(section[start:end], []byte(":"))
		if !isName(bytes.TrimSpace(name), "DKIM-Signature") {
			continue
		}
		f := SignatureField{Start: start, End: end}
		f.read(string(value))
		if found = append(found, f); len(found) == verdict.MaxSignatures {
			break
		}
	}
	return found
}

// Fields returns where each field of a header section begins and ends, as signatures cover
// them: a line that begins with space or tab belongs to the field before it. A line without
// a colon is a field.
func Fields(section []byte) iter.Seq2[int, int] {
	return func(yield func(start, end int) bool) {
		for s := (splitter{rest: section}); len(s.rest) > 0; {
			start := len(section) - len(s.rest)
			s.cutLine()
			for len(s.rest) > 0 && isSpace(s.rest[0]) {
				s.cutLine()
			}
			if !yield(start, len(section)-len(s.rest)) {
				return
			}
		}
	}
}

// The errors of malformed signatures.
var (
	errTag       = errors.New("a tag without =")
	errTwice     = errors.New("a tag twice")
	errNoDomain  = errors.New("no domain (d=)")
	errBadDomain = errors.New("no valid domain (d=)")
)

// read reads the tags of a signature's value.
func (f *SignatureField) read(value string) {
	f.State = verdict.ProofPending
	tags, err := readTags(value)
	if err == nil {
		f.Names = 1 + strings.Count(tags["h"], ":")
		f.Domain, err = signingDomain(tags)
	}
	if err != nil {
		f.State, f.Why = verdict.NotProven, err.Error()
	}
}

// readTags parses a tag list (RFC 6376, section 3.2). The values may have white space
// inside.
func readTags(value string) (map[string]string, error) {
	tags := map[string]string{}
	for pair := range strings.SplitSeq(value, ";") {
		name, text, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		switch _, twice := tags[name]; {
		case !ok && name == "":
			continue
		case !ok:
			return nil, errTag
		case twice:
			return nil, errTwice
		}
		tags[name] = text
	}
	return tags, nil
}

// signingDomain returns d= in normal form.
func signingDomain(tags map[string]string) (string, error) {
	raw, ok := tags["d"]
	if !ok {
		return "", errNoDomain
	}
	domain, err := sender.NormalizeDomain(strings.Join(strings.FieldsFunc(raw, unicode.IsSpace), ""))
	if err != nil || strings.HasPrefix(domain, "[") {
		return "", errBadDomain
	}
	return strings.Clone(domain), nil // so that it does not keep the header in memory
}
