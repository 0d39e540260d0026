package recipients

import (
	"io"

	"spamgate/blocklist/listfile"
	"spamgate/internal/config"
	"spamgate/smtpfilter"
)

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
		err = listfile.FirstWords(r, func(line int, word string, why error) bool {
			c.lines++
			if why != nil {
				c.refuse(line, word, why.Error())
				return true
			}
			entry, why := normal(word)
			if why != nil {
				c.refuse(line, word, why.Error()+hint)
				return true
			}
			return yield(entry)
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
