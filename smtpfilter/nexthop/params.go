package nexthop

import (
	"fmt"
	"slices"
	"strings"

	"spamgate/smtpfilter/wire"
)

// mailExtensions are the extensions whose parameters of MAIL cannot be left out:
// the client was told that the next hop does what they ask for.
var mailExtensions = map[string]string{
	"SMTPUTF8":    "SMTPUTF8",    // RFC 6531
	"RET":         "DSN",         // RFC 3461
	"ENVID":       "DSN",         // RFC 3461
	"BY":          "DELIVERBY",   // RFC 2852
	"MT-PRIORITY": "MT-PRIORITY", // RFC 6710
}

// rcptExtensions are the same for RCPT.
var rcptExtensions = map[string]string{
	"NOTIFY": "DSN", // RFC 3461
	"ORCPT":  "DSN", // RFC 3461
}

// mailParams are the parameters of MAIL as a connection's next hop is to get
// them. Dropped are those that it would refuse though it can do without them:
// BODY=8BITMIME and BODY=7BIT where it does not offer 8BITMIME, since the body is
// sent as it is in any case, SIZE, and AUTH, which only says whose the message is
// (RFC 4954, section 5). An error wraps ErrNotOffered or ErrRequireTLS.
func (s *SMTP) mailParams(c *conn, from string, params []string) ([]string, error) {
	if err := checkPath(from, c.offers); err != nil {
		return nil, err
	}
	kept, dropped := params, 0
	for i, p := range params {
		keep, err := s.mailParam(c, p)
		if err != nil {
			return nil, err
		}
		if keep && dropped > 0 {
			kept = append(kept, p)
		}
		if !keep {
			if dropped == 0 {
				kept = slices.Clone(params[:i])
			}
			dropped++
		}
	}
	return kept, nil
}

// mailParam reports whether one parameter of MAIL is sent.
func (s *SMTP) mailParam(c *conn, param string) (keep bool, err error) {
	keyword, value, _ := strings.Cut(param, "=")
	keyword = strings.ToUpper(keyword)
	switch keyword {
	case "BODY":
		if !strings.EqualFold(value, "BINARYMIME") {
			return c.offers.Has("8BITMIME"), nil
		}
		if !c.offers.Has("BINARYMIME") || !c.offers.Has("CHUNKING") { // RFC 3030, section 3
			return false, notOffered(param)
		}
	case "SIZE", "AUTH":
		return c.offers.Has(keyword), nil
	case "REQUIRETLS":
		if !c.offers.Has("REQUIRETLS") || !s.verified(c) {
			return false, ErrRequireTLS
		}
	}
	if extension := mailExtensions[keyword]; extension != "" && !c.offers.Has(extension) {
		return false, notOffered(param)
	}
	return true, nil
}

// checkRcpt checks that a connection's next hop offers what a recipient and its
// parameters need. An error wraps ErrNotOffered.
func checkRcpt(to string, params []string, offers wire.Extensions) error {
	if err := checkPath(to, offers); err != nil {
		return err
	}
	for _, p := range params {
		keyword, _, _ := strings.Cut(p, "=")
		if extension := rcptExtensions[strings.ToUpper(keyword)]; extension != "" && !offers.Has(extension) {
			return notOffered(p)
		}
	}
	return nil
}

// checkPath checks that 8-bit bytes are only said to who offers SMTPUTF8.
func checkPath(path string, offers wire.Extensions) error {
	for _, b := range []byte(path) {
		if b >= 0x80 && !offers.Has("SMTPUTF8") {
			return notOffered("an address with 8-bit bytes")
		}
	}
	return nil
}

func notOffered(what string) error { return fmt.Errorf("%s: %w", what, ErrNotOffered) }
