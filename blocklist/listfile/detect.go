package listfile

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Detect recognises the format of a list from its beginning (some KiB, unpacked),
// and says why. If nothing else is recognised the list is plain.
func Detect(start []byte) (Format, string) {
	g := guessFormat(start)
	return g.format, g.why
}

// guess is the format that a file seems to have.
type guess struct {
	format Format
	why    string
	lines  int // number of lines in that format
}

// guessLines is the greatest number of lines that are examined.
const guessLines = 500

// guessFormat lets each line vote for a format. Some lines, such as headers and
// directives, decide alone, since nearly all others may be bare names. Rules that
// no other format has must outnumber those. Any other format needs half of the
// votes, or the list is plain.
func guessFormat(start []byte) guess {
	start = bytes.TrimPrefix(start, []byte(bom))
	if trimmed := bytes.TrimLeft(start, " \t\r\n"); startsJSON(trimmed) {
		return guess{JSON, `it starts as JSON does`, len(trimmed)}
	}
	if end := bytes.LastIndexByte(start, '\n'); end >= 0 && len(start) >= readBuffer {
		start = start[:end] // the last line may go on
	}
	votes := map[Format]*vote{}
	number, significant := 0, 0
	for line := range bytes.Lines(start) {
		number++
		text, _ := head(string(line))
		f, sure := formatOfLine(text)
		if f == "" {
			continue
		}
		if votes[f] == nil {
			votes[f] = &vote{line: number, text: clip(text)}
		}
		votes[f].lines++
		if sure && votes[f].sure == 0 {
			votes[f].sure, votes[f].text = number, clip(text)
		}
		if significant++; significant == guessLines {
			break
		}
	}
	return decide(votes, significant, start)
}

// vote counts the lines that vote for a format.
type vote struct {
	lines int
	line  int    // number of the first of them
	sure  int    // number of the first that no other format has; 0 means none
	text  string // text of that line
}

// marks describe the lines that vote for a format.
var marks = map[Format]string{
	Hosts:         "an address and a name",
	PostfixAccess: "a pattern and an action",
	Exim:          "a key, a colon and data",
	Sendmail:      "settings of Sendmail's access database",
	RBLDNSD:       "rbldnsd's",
	SpamAssassin:  "settings of SpamAssassin",
	Rspamd:        "rspamd's",
	Adblock:       "rules for an ad blocker",
	Dnsmasq:       "settings of dnsmasq",
	RPZ:           "records of a zone",
	URLs:          "URLs",
}

// distinct are formats whose lines cannot be mistaken for those of others.
var distinct = []Format{SpamAssassin, Adblock, Dnsmasq, RPZ}

func decide(votes map[Format]*vote, significant int, start []byte) guess {
	plain := 0
	if v := votes[Plain]; v != nil {
		plain = v.lines
	}
	for _, f := range Formats { // in a fixed order, for the same answer each time
		if v := votes[f]; v != nil && v.sure > 0 {
			return guess{f, fmt.Sprintf("line %d has what only such a file has: %s", v.sure, v.text), v.lines}
		}
	}
	for _, f := range foreignFormats {
		if v := votes[f]; v != nil && 2*v.lines >= significant {
			return guess{f, fmt.Sprintf("line %d: %s", v.line, v.text), v.lines}
		}
	}
	for _, f := range Formats {
		v := votes[f]
		if v != nil && f != Plain && (2*v.lines >= significant || slices.Contains(distinct, f) && v.lines > plain) {
			return guess{f, fmt.Sprintf("%d of %d lines looked at are %s (line %d: %s)", v.lines, significant, marks[f], v.line, v.text), v.lines}
		}
	}
	if v := votes[Rspamd]; v != nil && v.lines > 1 && 10*v.lines >= significant {
		return guess{Rspamd, fmt.Sprintf("%d of %d lines looked at have scores or flags as rspamd's have (line %d: %s)", v.lines, significant, v.line, v.text), v.lines}
	}
	if 2*plain < significant {
		if g, ok := guessTable(start); ok {
			return g
		}
	}
	if plain > 0 {
		return guess{Plain, fmt.Sprintf("%d of %d lines looked at are entries as they are", plain, significant), plain}
	}
	return guess{Plain, "nothing in it says otherwise", 0}
}

var (
	adblockHeader    = regexp.MustCompile(`^\[Adblock|^! (Title|Homepage|Expires|Version|Last modified):`)
	adblockRule      = regexp.MustCompile(`^(@@)?\|\||^[^#\s]*#@?[?$%]?#[^# ]`)
	rbldnsdDirective = regexp.MustCompile(`^[#;:]?\$(TIMESTAMP|MAXRANGE4|SOA|NS|DATASET)\s|^\$[0-9=]\s|^:(127\.)?[0-9.]+:|^[^\s#;]+\s+:127\.[0-9.]+:`)
	zoneDirective    = regexp.MustCompile(`(?i)^\$(TTL|ORIGIN)\s|^\S*\s+([0-9]+[smhdw]?\s+|IN\s+)*SOA\s`)
	zoneRule         = regexp.MustCompile(`(?i)^\S*\s+([0-9]+[smhdw]?\s+|IN\s+)*CNAME\s+(\.|\*\.|rpz-[a-z-]+\.)\s*(;|$)`)
	dnsmasqRule      = regexp.MustCompile(`^(address|server|local)=/`)
	spamAssassinRule = regexp.MustCompile(`^(un)?(def_)?(block|black|welcome|white)list_(from|auth|to|from_rcvd|from_spf|from_dkim)\s`)
	postfixRule      = regexp.MustCompile(`(?i)^\S+\s+(REJECT|DEFER|DEFER_IF_PERMIT|DEFER_IF_REJECT|OK|DUNNO|DISCARD|HOLD|PERMIT|[45][0-9][0-9]\s.*)(\s|$)`)
	eximRule         = regexp.MustCompile(`^("[^"]+"|[^\s:"]*[.@][^\s:"]*)\s*:(\s|$)`)
	sendmailRule     = regexp.MustCompile(`(?i)^(From|To|Connect|Spam|GreetPause|ClientRate|ClientConn|AuthInfo|Try_TLS|TLS_\w+|Srv_Features):\S+\s+\S|^\S+\s+("?ERROR:|QUARANTINE:)`)
	ruleSetRule      = regexp.MustCompile(`(?i)^(-\s+)?["']?((DOMAIN|HOST)(-SUFFIX|-KEYWORD|-WILDCARD|-REGEX)|IP-CIDR6?|IP-ASN|GEOIP|GEOSITE|URL-REGEX|RULE-SET),|^(DOMAIN|HOST),[^,\s]+\.[a-z]|^payload:$|^-\s+["']?(\+\.|\*\.)?[a-z0-9-]+\.`)
	unboundRule      = regexp.MustCompile(`^local-(zone|data):|^server:$`)
	namedRule        = regexp.MustCompile(`^zone\s+"[^"]*"`)
	urlRule          = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*://[^\s,;"]+(\s+#|$)`) // with commas it may be a table
	rspamdRule       = regexp.MustCompile(`^/.+/([a-zA-Z]+|[a-zA-Z]*\s+-?[0-9.]+)$`)
	rspamdFlagged    = regexp.MustCompile(`^\S*[.@]\S*\s+(bl|wl|both):[0-9.]+\s*(#|$)`)
	rspamdScored     = regexp.MustCompile(`^\S*[.@]\S*\s+-?[0-9]+(\.[0-9]+)?\s*(#|$)`)
)

// formatOfLine returns the format that a line votes for, or "", and reports whether
// that decides.
func formatOfLine(text string) (f Format, sure bool) {
	s := trim(text)
	switch {
	case s == "":
		return "", false
	case rbldnsdDirective.MatchString(text):
		return RBLDNSD, true
	case adblockHeader.MatchString(text):
		return Adblock, true
	case adblockRule.MatchString(text):
		return Adblock, false
	case s[0] == '#' || s[0] == ';' || s[0] == '!' && strings.ContainsAny(s, " \t"):
		return "", false
	case ruleSetRule.MatchString(s):
		return ruleSet, false
	case unboundRule.MatchString(s):
		return unbound, false
	case namedRule.MatchString(s):
		return namedConf, false
	case sendmailRule.MatchString(s):
		return Sendmail, true
	case zoneDirective.MatchString(text):
		return RPZ, true
	case zoneRule.MatchString(text):
		return RPZ, false
	case dnsmasqRule.MatchString(s):
		return Dnsmasq, false
	case spamAssassinRule.MatchString(s):
		return SpamAssassin, false
	case urlRule.MatchString(s):
		return URLs, false
	case eximRule.MatchString(text):
		return Exim, false
	case postfixRule.MatchString(text):
		return PostfixAccess, false
	case rspamdFlagged.MatchString(s):
		return Rspamd, true
	case rspamdRule.MatchString(s), rspamdScored.MatchString(s):
		return Rspamd, false
	}
	content, _, _ := strings.Cut(s, "#")
	if fields := strings.Fields(content); len(fields) > 1 {
		if isIPRange(fields[0]) || isShortSinkhole(fields[0]) {
			return Hosts, false
		}
	}
	entry, _, _ := splitComment(s)
	if _, err := parseEntry(entry, Options{AllowPublicSuffix: true}); err == nil && strings.ContainsAny(entry, ".@<") {
		return Plain, false
	}
	return "?", false
}

// startsJSON reports whether a text starts as JSON does: with a bracket and then a string
// or an object, or with a brace and then a string. The bracket of an address literal in
// a plain list is followed by neither. An empty array or object is JSON too.
func startsJSON(s []byte) bool {
	if len(s) == 0 || s[0] != '[' && s[0] != '{' {
		return false
	}
	next := bytes.TrimLeft(s[1:], " \t\r\n")
	switch {
	case len(next) == 0:
		return false
	case next[0] == '"', s[0] == '[' && next[0] == '{':
		return true
	}
	return next[0] == s[0]+2 && len(bytes.TrimSpace(next)) == 1 // [] or {}
}

// guessTable reports whether nearly all records have as many cells as the first
// one, and more than one.
func guessTable(start []byte) (guess, bool) {
	in := bufio.NewReaderSize(bytes.NewReader(start), readBuffer)
	r := csv.NewReader(in)
	configureCSV(r, separator(in))
	r.LazyQuotes = true
	cells, records, same := 0, 0, 0
	for records < guessLines {
		record, err := r.Read()
		if err != nil {
			break
		}
		if cells == 0 {
			cells = len(record)
		}
		if records++; len(record) == cells {
			same++
		}
	}
	if records < 2 || cells < 2 || same*10 < records*8 {
		return guess{}, false
	}
	return guess{CSV, fmt.Sprintf("%d of %d records looked at have %d cells, with %q between them", same, records, cells, r.Comma), same}, true
}

// guessSure is the number of lines that must vote for another format than the
// configured one before a hint says so.
const guessSure = 3

// choose sets the format, which Auto detects. If the file looks like another format
// than the configured one, the hint of its first problem says so.
func (o *output) choose(start []byte) error {
	f := o.options.Format
	if f == "" {
		f = Plain
	}
	o.result.Format = f
	g := guessFormat(start)
	foreign := slices.Contains(foreignFormats, g.format)
	switch {
	case f == Auto && foreign:
		return fmt.Errorf("%w that can be read but %s (%s); convert it to one name a line", ErrNotList, g.format, g.why)
	case f == Auto:
		o.result.Format = g.format
		o.result.Notes = append(o.result.Notes, fmt.Sprintf("recognised as %s: %s", kinds[g.format], g.why))
		return nil
	case g.format == f, g.format == Plain, g.lines < guessSure && !foreign:
		return nil
	}
	report := o.problem
	hinted := false
	o.problem = func(p Problem) {
		if !hinted {
			hinted = true
			p.Hint = fmt.Sprintf("this looks like %s: set format = %q", kinds[g.format], g.format)
			if foreign {
				p.Hint = fmt.Sprintf("this looks like %s, which cannot be read here: convert it to one name a line", g.format)
			}
		}
		report(p)
	}
	return nil
}
