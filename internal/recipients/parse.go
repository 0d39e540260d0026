package recipients

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"

	"spamgate/internal/config"
	"spamgate/smtpfilter"
)

// maxLine bounds a line, in bytes. An address has at most 320.
const maxLine = 4096

// content is what a file says.
type content struct {
	domains   *smtpfilter.DomainSet    // of recipient_domains
	addresses *smtpfilter.AddressSet   // of valid_recipients
	set       *smtpfilter.RecipientSet // of a policy

	blank   bool // there is nothing at all in the file
	lines   int  // with an entry or something invalid
	invalid int
	first   Problem // the first invalid line
}

// entries returns the number of different entries.
func (c *content) entries() int {
	switch {
	case c.set != nil:
		return c.set.Len()
	case c.addresses != nil:
		return c.addresses.Len()
	}
	return c.domains.Len()
}

// Problem is an invalid line.
type Problem struct {
	Line int
	Text string
	What string
}

// parse reads a file of a kind: an entry a line. What follows the first word is ignored, so
// that the source of a Postfix table can be read. The error is the reader's.
func parse(r io.Reader, kind Kind) (*content, error) {
	c := &content{}
	normal, hint := config.RecipientDomain, "; "+config.DomainHint
	switch kind {
	case ValidRecipients:
		normal, hint = config.RecipientAddress, "; "+config.AddressHint
	case RecipientPolicy:
		normal, hint = config.RecipientEntry, "" // which the error has
	}
	var domains []string
	seen := map[string]bool{}
	var err error
	each := func(yield func(string) bool) {
		err = scan(r, func(line int, word string) bool {
			c.lines++
			entry, why := normal(word)
			if why != nil {
				c.refuse(line, word, why.Error()+hint)
				return true
			}
			return yield(entry)
		}, func(line int) {
			c.lines++
			c.refuse(line, "", fmt.Sprintf("the line has more than %d bytes", maxLine))
		})
	}
	switch kind {
	case ValidRecipients:
		c.addresses = smtpfilter.NewAddressSet(each)
		return c, err
	case RecipientPolicy:
		c.set = smtpfilter.NewRecipientSet(each)
		return c, err
	}
	for d := range each {
		if !seen[d] {
			seen[d] = true
			domains = append(domains, d)
		}
	}
	c.domains = smtpfilter.NewDomainSet(domains)
	return c, err
}

func (c *content) refuse(line int, text, what string) {
	if c.invalid++; c.invalid == 1 {
		c.first = Problem{line, text, what}
	}
}

// scan calls each with the first word of every line that is neither empty nor a comment, and
// long for those that are too long. A line that begins with white space continues a line
// that has more than one word, as in a Postfix table.
func scan(r io.Reader, each func(line int, word string) bool, long func(line int)) error {
	in := bufio.NewReaderSize(r, maxLine)
	hasValue := false
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		tooLong := err == bufio.ErrBufferFull
		for err == bufio.ErrBufferFull {
			_, err = in.ReadSlice('\n')
		}
		if err != nil && err != io.EOF {
			return err
		}
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		text := strings.TrimSpace(string(line))
		switch {
		case tooLong:
			long(n)
		case text == "" || text[0] == '#':
		case hasValue && (line[0] == ' ' || line[0] == '\t'):
		default:
			word, rest := cutWord(text)
			hasValue = rest != "" && rest[0] != '#'
			if !each(n, word) {
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// cutWord splits a text at the first white space outside quotes.
func cutWord(s string) (word, rest string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t'):
			return s[:i], strings.TrimLeft(s[i:], " \t")
		}
	}
	return s, ""
}
