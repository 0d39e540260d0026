package header

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// decorator makes random header sections around a known address.
type decorator struct {
	*rand.Rand
	tame bool // leave out what makes display text unclear
}

func (d decorator) pick(names ...string) string { return names[d.IntN(len(names))] }

// space returns optional white space or a comment.
func (d decorator) space() string {
	return d.pick("", "", " ", "\t ", "\r\n ", "(c)", " (a (nested, <x@y.example>) \\) one) ", "\r\n\t")
}

// name returns a display name that contains text like an address.
func (d decorator) name() string {
	return d.pick("", "Ann", "Ann B. C.", `"Ann, <x@y.example>"`, `"a \" quote"`, "x@y.example", "=?utf-8?q?J=C3=BC?=",
		"=?x-unknown?b?eA==?= =?utf-8?q?x=40y.example?=", "(x@y.example)", "J\xfcrgen", "Jürgen", "[x]", "Foo :-")
}

// address returns addr as one member of a list.
func (d decorator) address(addr string) string {
	local, domain, _ := strings.Cut(addr, "@")
	spec := d.pick(addr, addr, local+" @ "+domain, local+"@(c)"+strings.ReplaceAll(domain, ".", " . "), `"`+local+`"@`+domain)
	switch kind := d.IntN(6); {
	case kind == 0:
		return d.space() + spec + d.space()
	case kind == 1:
		return d.name() + d.space() + "<@r1.example,@r2.example:" + spec + ">"
	case kind == 2:
		return "group:" + d.space() + spec + ";"
	case kind == 3 && !d.tame:
		return d.name() + d.pick(" <", "<<") + spec // never closed
	}
	return d.name() + d.space() + "<" + d.space() + spec + d.space() + ">" + d.space()
}

// bad returns a member that is malformed or has no address.
func (d decorator) bad() string {
	return d.pick("", "<>", "<", "Ann", "@", "x@", "<x y>", "=?utf-8?q?x", "]", "x@[", ")", "x@@y@z", "\x80\xff", "a\\", "group:")
}

// field returns a From field with addr among other members.
func (d decorator) field(addr string) string {
	var members []string
	for range d.IntN(4) {
		bad := d.bad()
		if d.tame {
			bad = d.name() + "<other@other.example>"
		}
		members = append(members, d.pick(bad, "good@other.example", "Good <good@other.example>"))
	}
	pos := d.IntN(len(members) + 1)
	members = slices.Insert(members, pos, d.address(addr))
	return d.pick("From", "FROM", "from ", "From\t") + ":" + d.space() + strings.Join(members, ",")
}

// section returns a section with the field among others.
func (d decorator) section(addr string) string {
	var lines []string
	for range d.IntN(4) {
		lines = append(lines, d.pick("Subject: x", "garbage", ": x", "From:", "From: <", "Subject: \"", " orphan", ">From x", "From x@y.example",
			"Sender: x@y.example", "X(: \"\r\n folded"))
	}
	pos := d.IntN(len(lines) + 1)
	lines = slices.Insert(lines, pos, d.field(addr))
	return strings.Join(lines, "\r\n") + "\r\n"
}

// TestDecoratedAddressIsFound wants an address to be found whatever is around it, and
// display text not to be found.
func TestDecoratedAddressIsFound(t *testing.T) {
	d := decorator{Rand: rand.New(rand.NewPCG(1, 2))}
	for i := range 20_000 {
		d.tame = i%2 == 0
		addr := fmt.Sprintf("user%d@host%d.example", i, d.IntN(100))
		section := d.section(addr)
		r := Senders([]byte(section), asked)
		if !slices.Contains(r.Senders, Sender{Field: "From", Address: addr}) {
			t.Fatalf("%q is not found in\n%q\n%q", addr, section, r.Senders)
		}
		if d.tame && slices.Contains(r.Senders, Sender{Field: "From", Address: "x@y.example"}) {
			t.Fatalf("display text is found in\n%q\n%q", section, r.Senders)
		}
		checkResult(t, []byte(section), r)
	}
}

// TestOpenMarksHideNothing wants an unclosed mark to hide no address, wherever it is.
func TestOpenMarksHideNothing(t *testing.T) {
	const value = "Ann <a@b.example>, c@d.example; Eve <e@f.example"
	for _, mark := range []string{`"`, "(", "((", `\`, "[", "(\"", "\"(", "<", "=?utf-8?q?", "\xc3"} {
		for i := range len(value) + 1 {
			behind := i > 0 && strings.ContainsRune("@.abcdefelpmx", rune(value[i-1]))
			before := i < len(value) && strings.ContainsRune("@.abcdefelpmx", rune(value[i]))
			if behind && before || (behind || before) && strings.Contains("<=?utf-8?q?\xc3", mark) {
				continue // it makes another address
			}
			section := "From: " + value[:i] + mark + value[i:]
			got := show(Senders([]byte(section), asked))
			for _, want := range []string{"From a@b.example", "From c@d.example", "From e@f.example"} {
				if !slices.Contains(got, want) {
					t.Errorf("%q: no %s in %q", section, want, got)
				}
			}
		}
	}
}

func TestSendersAreInOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var section strings.Builder
		var want []Sender
		for i := range 1 + rnd.IntN(40) {
			field := asked[rnd.IntN(len(asked))]
			section.WriteString(field + ":")
			for j := range 1 + rnd.IntN(5) {
				a := fmt.Sprintf("a%d@b%d.example", i, j)
				if rnd.IntN(2) == 0 {
					fmt.Fprintf(&section, " (c) %s,", a) // for the scanner
				} else {
					fmt.Fprintf(&section, " Foo <%s>,", a)
				}
				want = append(want, Sender{Field: field, Address: a})
			}
			section.WriteString("\r\n")
		}
		if got := Senders([]byte(section.String()), asked).Senders; !slices.Equal(got, want) {
			t.Fatalf("%s\n got %v\nwant %v", section.String(), got, want)
		}
	}
}
