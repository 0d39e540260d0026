package lists

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"spamgate/blocklist/sender"
	"spamgate/internal/config"
	"spamgate/internal/listedit"
)

// recipientRule says what a list does for some recipients. The first rule that matches a
// recipient counts.
type recipientRule struct {
	match  []string // entries; nil: all recipients
	none   bool     // the list does not count
	action string   // in a table of Postfix
}

// recipientRules returns what a list does for the recipients of a configuration: those that
// are exempt, those with a policy, and the others. Milder is called if Postfix has no action
// that does the same.
func recipientRules(c *config.Config, l config.List, action string, milder func(what string)) ([]recipientRule, error) {
	if action == "DISCARD" {
		action = "WARN"
	}
	exempt := slices.DeleteFunc(slices.Clone(c.Policy.ExemptRecipients), func(key string) bool { return key == "postmaster@" })
	rules := []recipientRule{{match: append([]string{"postmaster@"}, exempt...), none: true}}
	for _, p := range c.RecipientPolicies {
		rule := recipientRule{match: p.Match, none: p.Exempt || len(p.Lists) > 0 && !slices.Contains(p.Lists, l.Name), action: action}
		if path, ok := p.File(); ok {
			var err error
			if rule.match, err = recipientFile(path); err != nil {
				return nil, fmt.Errorf("recipient_policy %s: %w", p.Name, err)
			}
		}
		switch {
		case l.Type == "allow":
		case p.Mode == "monitor", p.MaxAction == "tag":
			rule.action = "WARN"
		case p.MaxAction == "discard" && action != "WARN":
			rule.action = "WARN"
			milder("recipient_policy " + p.Name + " discards, and DISCARD would discard the message of the other recipients, too")
		case p.MaxAction == "defer" && action == "":
			rule.action = "DEFER"
		}
		rules = append(rules, rule)
	}
	return append(rules, recipientRule{action: action}), nil
}

// recipientFile returns the entries of a file with recipients. Invalid ones match nobody.
func recipientFile(path string) (entries []string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimPrefix(lines.Text(), "\ufeff")
		word, _, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
		entry, err := config.RecipientEntry(word)
		if word == "" || word[0] == '#' || err != nil {
			continue
		}
		if entries = append(entries, entry); len(entries) > maxRecipientPatterns {
			return nil, fmt.Errorf("%s has more than %d recipients: %w", path, maxRecipientPatterns, errManyRecipients)
		}
	}
	return entries, lines.Err()
}

// print writes the rule with the lines for its recipients, in the syntax of regexp_table(5).
func (r *recipientRule) print(b *bytes.Buffer, body string) {
	if r.match == nil {
		b.WriteString(body)
		return
	}
	// A recipient is meant if the most specific entry that matches is not an exception.
	without := map[string][]string{} // patterns by those of more specific exceptions
	var order []string
	for _, entry := range r.match {
		if strings.HasPrefix(entry, "!") {
			continue
		}
		not := ""
		for _, other := range r.match {
			if key, ok := strings.CutPrefix(other, "!"); ok && beats(key, entry) {
				not += "|" + keyRegexp(key)
			}
		}
		if without[not] == nil {
			order = append(order, not)
		}
		without[not] = append(without[not], keyRegexp(entry))
	}
	for _, not := range order {
		fmt.Fprintf(b, "if /%s/\n", strings.Join(without[not], "|"))
		if not != "" {
			fmt.Fprintf(b, "if !/%s/\n", not[1:])
		}
		io.WriteString(b, body+"/^/\tDUNNO\n")
		if not != "" {
			b.WriteString("endif\n")
		}
		b.WriteString("endif\n")
	}
}

// beats reports whether an exception comes before an entry for some of its recipients.
func beats(exception, entry string) bool {
	kind := listedit.KindOf(exception)
	return exception == entry || slices.Contains(listedit.Covering(exception, kind), entry) ||
		listedit.KindOf(entry) == sender.KindLocal && kind != sender.KindLocal && kind != sender.KindAddress
}
