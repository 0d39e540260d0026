// Package milter tests the milter with the programs that speak its protocol: Postfix, Sendmail
// and miltertest. The same senders and headers get the proxy's replies from both mail servers,
// and a gate that is killed in any state loses no mail.
package milter
