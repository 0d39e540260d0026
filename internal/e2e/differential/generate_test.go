package differential

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
)

// What the gates' list has: a domain, which stands for its subdomains too, and an address.
const (
	listedDomain  = "listed.example"
	listedAddress = "evil@addr.example"
)

// A generator makes messages of which the gate and readers may think differently.
type generator struct {
	*rand.Rand
	tame bool // it breaks no rule of the grammar by itself
}

// generate returns the message of a seed, without what body adds.
func generate(seed uint64) string {
	g := generator{Rand: rand.New(rand.NewPCG(seed, 26))}
	g.tame = g.chance(3)
	return g.message()
}

// pick returns one of the texts.
func (g generator) pick(names ...string) string { return names[g.IntN(len(names))] }

// chance reports true once in n times.
func (g generator) chance(n int) bool { return g.IntN(n) == 0 }

// stray returns one of the texts, or "" if the generator is tame.
func (g generator) stray(names ...string) string {
	if s := g.pick(names...); !g.tame {
		return s
	}
	return ""
}

// message returns a header section, the empty line, and the first lines of a body.
func (g generator) message() string {
	var b strings.Builder
	for range g.IntN(3) {
		b.WriteString(g.otherField())
	}
	fields := 1
	if g.chance(3) {
		fields = 2
	}
	for range fields {
		b.WriteString(g.senderField())
		if g.chance(6) {
			b.WriteString(g.otherField())
		}
	}
	b.WriteString("\r\n")
	if g.chance(20) {
		b.WriteString("From: spam@listed.example\r\n\r\n")
	}
	return b.String()
}

// senderField returns a field that names a sender, or one with nearly such a name.
func (g generator) senderField() string {
	name := g.pick("From", "From", "From", "From", "From", "Sender", "Reply-To", "from", "FROM")
	if g.chance(10) && !g.tame {
		name = g.pick("From ", "From\t", "From\r\n ", " From", "From\x01", "From\xa0", "From\u200b", "Fr\x7fom", "From\v", "Resent-From",
			"From From", "=?us-ascii?q?From?=", "From(c)", `"From"`, "From;", "\ufeffFrom", "Reply-to ", "Sender\f")
	}
	value := g.value()
	if g.chance(8) && !g.tame {
		value = g.dirty(value)
	}
	return name + g.pick(": ", ": ", ": ", ":", ":\t", ":\r\n ", ": \r\n\t") + value + "\r\n"
}

// otherField returns a field that the gate does not check, or a line that is no field.
func (g generator) otherField() string {
	kind := g.IntN(8)
	if kind == 3 && g.tame {
		kind++
	}
	switch kind {
	case 0:
		return "X-" + g.padding("x") + ": z\r\n"
	case 1, 2:
		// A server that cuts the line there makes a field of the rest.
		text := g.pick("To: ", "References: ", "X-Long: ", "DKIM-Signature: ")
		return text + strings.Repeat("x", max(0, g.size()-len(text)+g.IntN(24)-20)) + g.pick("", " ", "\t", ",") +
			"From: <spam@listed.example>" + g.pick("", " ", "\r\n ") + g.padding("y") + "\r\n"
	case 3:
		return g.pick("From spam@listed.example Mon Jan  1 00:00:00 2026", ">From spam@listed.example", "no field", "From", ":", ": x", " ", "\t", "  x",
			".", "..", "From <spam@listed.example>", "spam@listed.example", ">From: spam@listed.example", "-- ", "\x01", "Content-Type") + "\r\n"
	case 4:
		return "Content-Type: multipart/mixed; boundary=" + g.pick("x", `"x`, "=?us-ascii?q?x?=") + "\r\n"
	}
	return g.pick("To: you@example.org", "Subject: =?utf-8?q?a?=", "Date: Fri, 20 Nov 2026 10:00:00 +0000", "Message-ID: <1@x.example>", "Resent-From: spam@listed.example",
		"To: spam@listed.example", "Errors-To: spam@listed.example", "Return-Path: <spam@listed.example>", "Bcc:", "Apparently-From: spam@listed.example") + "\r\n"
}

// value returns the value of a field: a few words, and most times an address at the end.
func (g generator) value() string {
	var b strings.Builder
	for range g.IntN(5) {
		b.WriteString(g.word(0) + g.pick("", " ", " ", ", ", ",", ";", "\r\n ", "\t"))
	}
	if !g.chance(6) {
		b.WriteString(g.pick("<ok@ok.example>", "<ok@ok.example>", "ok@ok.example", "<ok@ok.example>, "+g.word(0), "<ok@ok.example> "+g.word(0)))
	}
	return strings.TrimSpace(b.String())
}

// word returns a part of a value.
func (g generator) word(depth int) string {
	if depth > 2 {
		return g.pick("Ann", "ok@ok.example")
	}
	inner := func() string {
		var b strings.Builder
		for range g.IntN(4) {
			b.WriteString(g.word(depth+1) + g.pick("", " ", ", "))
		}
		return b.String()
	}
	switch g.IntN(14) {
	case 0, 1:
		return g.pick("Ann", "Bob", "spam", "evil", "listed.example", "a.b", "é", "'x'", "via")
	case 2, 3:
		return g.quoted(inner())
	case 4, 5:
		return "(" + strings.NewReplacer("(", `\(`).Replace(inner()) + ")" + g.stray("", "", "", "", ")", `(`, `\`)
	case 6, 7:
		return g.encoded(g.pick(inner(), g.address(), g.address(), "Ann", "<"+g.address()+">", g.address()+","))
	case 8, 9:
		return g.address()
	case 10:
		return g.pick("<", "<", "< ", "<<", "<\r\n ") + g.pick("", "", "@listed.example:", "@listed.example,@x.example:", "Ann ", "(c)", `"x"`) + g.address() + g.pick(">", ">", ">", " >", "", ">>", ">x", "(c)>")
	case 11:
		return g.pick("group", `"group"`, "", "a b", "spam@listed.example") + g.pick(":", ": ", "::") + inner() + g.pick(";", ";", "", "; x")
	case 12:
		return g.stray("<", ">", `"`, "(", ")", `\`, ",", ";", ":", "@", ".", "[", "]", "<>", `""`, "()", `\"`, "=?", "?=", "\u3000", "\xa0", "@@", "%", "!")
	}
	switch g.IntN(6) {
	case 0, 1, 2:
		return "Ann"
	case 3: // a server that cuts it there makes another address of it
		return g.padding(g.pick("x", "x ")) + g.pick(" <", " ", "") + "spam@listed.example" + g.pick(".ok.example", "ok.example", "@ok.example", "%ok.example") + g.pick(">", "", " <ok@ok.example>")
	}
	return g.padding(g.pick(" ", "x", `\"`, "(c)", "=?us-ascii?q?x?= ", "\r\n ", "x ", "\t", "é", ",", "a@b.example,"))
}

// quoted returns a quoted string with a text, which may end elsewhere.
func (g generator) quoted(text string) string {
	if g.tame || !g.chance(3) {
		text = strings.ReplaceAll(text, `"`, `\"`)
	}
	return `"` + text + `"` + g.stray("", "", "", "", `"`, `x"`, `\`)
}

// address returns an address, perhaps a listed one.
func (g generator) address() string {
	local := g.pick("ann", "joe", "spam", "spam", "a.b", `"a b"`, `"a@b"`, "a b", "")
	domain := g.pick("plain.example", "ok.example", "plain.example", "[192.0.2.7]", "host")
	switch g.IntN(6) {
	case 0, 1:
		domain = g.pick("listed.example", "listed.example", "sub.listed.example", "LISTED.example", "listed.example.", "listed\u3002example", "\uff4cisted.example", "[listed.example]")
	case 2:
		local, domain = g.pick("evil", "evil", `"evil"`, "Evil", `e\vil`), "addr.example"
	}
	address := local + cmp.Or(g.stray("", "", "", "", "%", "@@", "\uff20", "\xc0"), g.pick("@", "@", "@", " @ ", "@(c)", "(c)@", "@\r\n ")) + domain
	switch {
	case g.tame:
	case g.chance(4):
		address = g.dirty(address)
	case g.chance(10):
		address = g.encoded(address)
	case g.chance(20):
		address += g.pick("@ok.example", "%ok.example", "!ok", ">", " ok", "\\")
	}
	return address
}

// dirty returns a text with bytes in it that readers drop, keep or stop at.
func (g generator) dirty(text string) string {
	for range 1 + g.IntN(2) {
		if g.chance(12) && text != "" { // a server may drop the eighth bit
			pos := g.IntN(len(text))
			text = text[:pos] + string([]byte{text[pos] | 0x80}) + text[pos+1:]
			continue
		}
		pos := g.IntN(len(text) + 1)
		text = text[:pos] + g.pick("\x01", "\x1f", "\x7f", "\v", "\f", "\b", "\x80", "\xff", "\xc2", "\u0085", "\u200b", "\u00ad", "\ufeff", "\u2028", "\u00a0", "\u3000",
			"(c)", "()", " ", "\t", "\r\n ", "\r\n\t", `\`, `""`, `"`, "=?us-ascii?q??=", "=?us-ascii?q?x?=", ".", "<", ">", ",", ";", ":", "@", "'", "?", "=", "\u202e", "&") + text[pos:]
	}
	return text
}

// charsets are those of encoded-words: with ASCII inside, without, and unknown ones.
var charsets = strings.Fields(`us-ascii utf-8 UTF-8*en iso-8859-1 iso-8859-15 windows-1252 koi8-r gb2312 gbk gb18030 hz-gb-2312 big5 euc-kr ks_c_5601-1987
	shift_jis iso-2022-jp iso-2022-kr iso-2022-cn euc-jp utf-7 utf-16 utf-16le utf-16be utf-32 utf-32be ucs-2 ibm500 ibm1047 cp1140 cp424 cp037 cp437 cp850 macintosh
	x-mac-cyrillic x-user-defined replacement unknown unknown-8bit x idna punycode rot13 hex base64 unicode-1-1-utf-7 utf-8-sig utf8 ascii latin1 x-gbk johab viscii 8bit`)

// encoded returns an encoded-word with a text (RFC 2047), which may be broken.
func (g generator) encoded(text string) string {
	how := g.pick("q", "Q", "b", "B")
	if strings.ToLower(how) == "b" {
		text = base64.StdEncoding.EncodeToString([]byte(text))
	} else {
		var b strings.Builder
		all := g.chance(2)
		for _, c := range []byte(text) {
			switch {
			case c == ' ':
				b.WriteByte('_')
			case c <= ' ' || c > '~' || strings.IndexByte("=?_", c) >= 0 || all && strings.IndexByte(`@<>",;:().`, c) >= 0 || g.chance(10):
				fmt.Fprintf(&b, "=%02X", c)
			default:
				b.WriteByte(c)
			}
		}
		text = b.String()
	}
	word := "=?" + g.pick(charsets...) + "?" + how + "?" + text + "?="
	if g.chance(12) && !g.tame {
		word = g.dirty(word)
	}
	return word
}

// bounds are sizes at which servers fold, split or cut lines and fields.
var bounds = []int{10, 76, 78, 100, 215, 230, 250, 500, 990, 998, 998, 1000, 1024, 2048, 2048, 4096, 8192, 16384, 32768, 65536, 102400}

// size returns a size near a bound, seldom a large one.
func (g generator) size() int {
	n := bounds[g.IntN(1+g.IntN(len(bounds)))]
	return n + g.IntN(9+n/20) - 4
}

// padding returns a text again and again, up to a size near a bound.
func (g generator) padding(text string) string {
	n := g.size()
	return strings.Repeat(text, n/len(text)+1)
}
