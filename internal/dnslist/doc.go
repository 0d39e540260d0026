// Package dnslist asks lists of domains that others publish in DNS (RFC 5782), such as
// dbl.example.org: a domain is listed if the name DOMAIN.ZONE has an address in
// 127.0.0.0/8 that counts.
//
// A [Client] has the lists, the cache and the resolvers. Each mail message has a
// [Message], which begins its questions at once and waits for the answers only when
// they are needed:
//
//	m := client.Message()
//	m.Ask("dbl", "mail.example.com", "example.org") // begins, does not wait
//	r := m.Result(ctx, "dbl", "mail.example.com")   // waits for this list's answer
//
// # Which names are asked
//
// A list with Exact is asked for the domain alone. Any other list is asked for the
// domain and its parents, down to the one that is a label below a public suffix:
// mail.example.co.uk, example.co.uk. Publishers say which of the two they want. A list
// of registered domains (URIBL strips all host parts, for one) answers for the shortest
// of these names only, so Exact would miss the senders of subdomains. Exact is right for
// a publisher that answers for every name below a listed domain, and for one that lists
// host names and does not want their domains to be asked: it spares questions.
//
// A message asks for at most [MaxNames] different names, whatever the number of lists.
// The registered domains of all senders come first, so that a sender with many labels
// cannot displace another one. Address literals and names that DNS cannot carry are
// never asked.
//
// # How long a message waits
//
// The waits of a message for one list take at most its Timeout in sum, however many
// names it asks. What has no answer by then is [Unknown].
//
// # Health
//
// At the start and every few minutes each list is asked for the name INVALID, which no
// list may have, and for its test point, which it must have. A list that has INVALID
// answers every question with yes, or refuses the questions: it is switched off until
// it behaves. A message whose questions begin before the first of these checks has
// ended waits for the check too. A listing waits for another check if the last one is a
// minute old: a publisher that ends its list by listing everything has no more mail refused
// than in that minute.
//
// After 5 failures in a row a list is not asked any more, and costs nothing. What is cached
// still counts. The checks go on, and the first one that gets answers ends this state.
//
// # Forged answers
//
// Each question has a socket of its own, so a port that the kernel chooses, a random id,
// and letters in random case. A reply must repeat all of them. If it does not repeat the
// case, or many datagrams are not the reply, the question is asked again over TCP. The
// answers are as good as the resolver, which should be on the same machine or network.
// Since an answer can be forged in spite of all, no list in DNS should let mail in.
package dnslist
