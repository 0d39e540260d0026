package nexthop

import (
	"fmt"
	"strconv"
	"strings"

	"spamgate/internal/text"
	"spamgate/smtpfilter/wire"
)

// extensionOf has the extension of each parameter of MAIL and RCPT that cannot be
// dropped: the client was offered what it asks for.
var extensionOf = map[string]string{
	"SMTPUTF8":    "SMTPUTF8",    // RFC 6531
	"RET":         "DSN",         // RFC 3461
	"ENVID":       "DSN",         // RFC 3461
	"NOTIFY":      "DSN",         // RFC 3461
	"ORCPT":       "DSN",         // RFC 3461
	"BY":          "DELIVERBY",   // RFC 2852
	"MT-PRIORITY": "MT-PRIORITY", // RFC 6710
}

// fitsChunk reports whether a message has no SIZE (RFC 1870) of more than a chunk. More
// than one would cost more than DATA does: their bytes are copied, and each is answered.
func fitsChunk(params []string) bool {
	for _, p := range params {
		if keyword, value, _ := strings.Cut(p, "="); strings.EqualFold(keyword, "SIZE") {
			n, err := strconv.ParseUint(value, 10, 64)
			return err == nil && n <= chunkSize
		}
	}
	return true
}

// mailParams returns the parameters of MAIL for a connection's next hop. It drops
// those that are not offered and not needed: BODY=8BITMIME and BODY=7BIT, since the
// body is sent unchanged in any case, SIZE, and AUTH, which only names the sender (RFC
// 4954, section 5). An error wraps ErrNotOffered or ErrRequireTLS.
func (s *server) mailParams(c *conn, from string, params []string) ([]string, error) {
	if err := checkPath(from, c.offers); err != nil {
		return nil, err
	}
	kept := make([]string, 0, len(params))
	for _, p := range params {
		keep, err := s.mailParam(c, p)
		if err != nil {
			return nil, err
		}
		if keep {
			kept = append(kept, p)
		}
	}
	return kept, nil
}

// mailParam reports whether to send one parameter of MAIL.
func (s *server) mailParam(c *conn, param string) (keep bool, err error) {
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
	err = checkParam(param, keyword, c.offers)
	return err == nil, err
}

// checkRcpt returns an error that wraps ErrNotOffered if the next hop does not offer
// what a recipient and its parameters need.
func checkRcpt(to string, params []string, offers wire.Extensions) error {
	if err := checkPath(to, offers); err != nil {
		return err
	}
	for _, p := range params {
		keyword, _, _ := strings.Cut(p, "=")
		if err := checkParam(p, strings.ToUpper(keyword), offers); err != nil {
			return err
		}
	}
	return nil
}

// checkParam returns an error if a parameter needs what is not offered.
func checkParam(param, keyword string, offers wire.Extensions) error {
	if extension := extensionOf[keyword]; extension != "" && !offers.Has(extension) {
		return notOffered(param)
	}
	return nil
}

// checkPath returns an error if an address with 8-bit bytes cannot be sent.
func checkPath(path string, offers wire.Extensions) error {
	if !text.IsASCII(path) && !offers.Has("SMTPUTF8") {
		return notOffered("an address with 8-bit bytes")
	}
	return nil
}

func notOffered(what string) error { return fmt.Errorf("%s: %w", what, ErrNotOffered) }
