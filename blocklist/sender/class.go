package sender

// Classes of an ASCII byte; a byte beyond ASCII has none.
const (
	// atext may stand in a local part without quotes: RFC 5322's atext, and
	// the dot. Where dots stand is not looked at: a..b@ and .a@ are in use.
	atext = 1 << iota
	// normalLocal is atext that case folding leaves alone.
	normalLocal
	// domainText may stand in a domain, dots aside: letters, digits, hyphen,
	// and what else of atext is seen there, first of all the underscore. The
	// asterisk is not among them: it would read as a key for subdomains.
	domainText
	// normalDomain is domainText that lower-casing leaves alone.
	normalDomain
)

var class = func() (t [256]uint8) {
	for c := 'a'; c <= 'z'; c++ {
		t[c] = atext | normalLocal | domainText | normalDomain
		t[c-'a'+'A'] = atext | domainText
	}
	for _, c := range "0123456789!#$%&'+-/=?^_`{|}~" {
		t[c] = atext | normalLocal | domainText | normalDomain
	}
	t['*'] = atext | normalLocal
	t['.'] = atext | normalLocal
	return t
}()
