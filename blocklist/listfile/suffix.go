package listfile

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// checkSuffix refuses a domain under which strangers register theirs: a single
// label, or a public suffix of the ICANN section of publicsuffix.org's list. The
// list's private section (github.io) names real owners, whom one may well block.
//
// A domain with a wildcard rule below it (sch.uk for *.sch.uk) counts as a
// suffix: all its children are. One look-up of a child answers for both: its
// suffix is then the child or d, else something shorter.
func checkSuffix(d string) error {
	if strings.IndexByte(d, '.') < 0 {
		return errSingleLabel
	}
	if suffix, icann := publicsuffix.PublicSuffix("x." + d); icann && len(suffix) >= len(d) {
		return errSuffix
	}
	return nil
}
