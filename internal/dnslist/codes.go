package dnslist

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Codes says which answers of a list count. The zero Codes are DefaultCodes. Whatever
// the Codes, these never count: 127.0.0.1, which publishers give to clients that they
// refuse, 127.255.255.0/24, which is an error of the list, and what lies outside
// 127.0.0.0/8.
type Codes struct{ text string } // normal form, so that Codes are comparable

// DefaultCodes are the Codes of a list that names none.
const DefaultCodes = "127.0.0.2-127.255.254.255"

// maxCodes bounds the values of a list.
const maxCodes = 256

// ParseCodes parses the values of a list:
//
//	127.0.0.2               this address
//	127.0.1.2-127.0.1.99    all addresses from the first to the last
//	&8, &0.0.0.8            all addresses that have this bit: 127.0.0.8, 127.0.0.72
//
// An answer counts if it fits one of the values.
func ParseCodes(values []string) (Codes, error) {
	if len(values) > maxCodes {
		return Codes{}, fmt.Errorf("%d codes: use at most %d, and ranges", len(values), maxCodes)
	}
	var normal []string
	for _, v := range values {
		c, err := parseCode(v)
		if err != nil {
			return Codes{}, err
		}
		normal = append(normal, c.String())
	}
	return Codes{strings.Join(normal, " ")}, nil
}

// String returns the values with spaces between.
func (c Codes) String() string {
	if c.text == "" {
		return DefaultCodes
	}
	return c.text
}

// rules returns the values as numbers.
func (c Codes) rules() []code {
	var rules []code
	for v := range strings.FieldsSeq(c.String()) {
		r, err := parseCode(v)
		if err != nil {
			panic(err) // the text comes from code.String
		}
		rules = append(rules, r)
	}
	return rules
}

// code is one value of Codes: the addresses from first to last, or if bit is not 0,
// those that have the bit.
type code struct{ first, last, bit uint32 }

const (
	loopbackNet  = 127 << 24              // 127.0.0.0
	loopbackEnd  = loopbackNet | 0xffffff // 127.255.255.255
	neverListed  = loopbackNet | 1        // 127.0.0.1
	errorCodes   = 127<<24 | 0xffff00     // 127.255.255.0
	errorCodeNet = 0xffffff00             // /24
)

func parseCode(v string) (code, error) {
	if bit, ok := strings.CutPrefix(v, "&"); ok {
		return parseBit(v, bit)
	}
	from, to, isRange := strings.Cut(v, "-")
	if !isRange {
		to = from
	}
	first, ok := parseAddr(from)
	last, ok2 := parseAddr(to)
	switch {
	case !ok || !ok2:
		return code{}, fmt.Errorf(`code %q is not an address: use "127.0.0.2", a range "127.0.0.2-127.0.0.11", or a bit "&8"`, v)
	case first>>24 != 127 || last>>24 != 127:
		return code{}, fmt.Errorf("code %q is outside 127.0.0.0/8: lists answer from this network only", v)
	case last < first:
		return code{}, fmt.Errorf("code %q ends before it begins", v)
	case first >= errorCodes:
		return code{}, fmt.Errorf("code %q is in 127.255.255.0/24: these addresses say that the list refuses the question", v)
	case last <= neverListed:
		return code{}, fmt.Errorf("code %q never counts: lists answer 127.0.0.1 to clients that they refuse", v)
	}
	return code{first: first, last: last}, nil
}

// parseBit parses what follows "&": a number of one bit, or the same as an address.
// Programs differ on what several bits mean, all of them (Exim) or any (SpamAssassin),
// so a value has one.
func parseBit(v, text string) (code, error) {
	n, ok := parseAddr(text)
	if !ok {
		u, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return code{}, fmt.Errorf(`code %q is not a bit: use "&8" or "&0.0.0.8"`, v)
		}
		n = uint32(u)
	}
	switch {
	case bits.OnesCount32(n) > 1:
		var each []string
		for rest := n; rest != 0; rest &= rest - 1 {
			each = append(each, code{bit: rest & -rest}.String())
		}
		return code{}, fmt.Errorf("code %q has several bits: write a value for each, %s; an answer counts if it has one of them",
			v, strings.Join(each, " "))
	case n == 0 || n >= 1<<24:
		return code{}, fmt.Errorf(`code %q has no bit of the address's last three bytes: use "&8" or "&0.0.0.8"`, v)
	}
	return code{bit: n}, nil
}

// parseAddr parses an IPv4 address.
func parseAddr(s string) (uint32, bool) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return 0, false
	}
	return number(a), true
}

// number returns an IPv4 address as a number.
func number(a netip.Addr) uint32 {
	b := a.As4()
	return binary.BigEndian.Uint32(b[:])
}

func address(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

// String returns the value in its normal form.
func (c code) String() string {
	switch {
	case c.bit >= 1<<8:
		return "&" + address(c.bit).String()
	case c.bit != 0:
		return "&" + strconv.Itoa(int(c.bit))
	case c.first == c.last:
		return address(c.first).String()
	}
	return address(c.first).String() + "-" + address(c.last).String()
}

func (c code) has(n uint32) bool {
	if c.bit != 0 {
		return n&c.bit != 0
	}
	return c.first <= n && n <= c.last
}

// isListing reports whether an answer is one that a list may give for a listed name.
func isListing(n uint32) bool {
	return n > neverListed && n <= loopbackEnd && n&errorCodeNet != errorCodes
}

// counting returns the addresses that count. An address that makes the answer
// unusable is the cause: one of the list's errors, or one outside 127.0.0.0/8.
func counting(rules []code, addrs []netip.Addr) (codes []netip.Addr, unusable Cause) {
	for _, a := range addrs {
		n := number(a)
		switch {
		case n>>24 != 127:
			return nil, CauseForeign
		case n&errorCodeNet == errorCodes:
			return nil, CauseRefused
		}
		if isListing(n) && slices.ContainsFunc(rules, func(c code) bool { return c.has(n) }) {
			codes = append(codes, a)
		}
	}
	return codes, ""
}
