// Package exports proves that the programs for which spamgate lists export writes decide
// like the gate: Postfix, rbldnsd, BIND's named and rspamd read what the program has
// written of random lists, and judge the same senders as spamgate check. What a format
// cannot express may let a sender through, is reported, and refuses nobody.
//
// It also proves the other way: the gate decides by random files in the formats of
// Postfix, rbldnsd, named, dnsmasq and SpamAssassin like these programs. It refuses more
// only by zones in which a record ends a wildcard, and by SpamAssassin's settings, as
// docs/lists.md says.
//
// With SPAMGATE_E2E_FULL=1 each compares 10,000 decisions.
package exports
