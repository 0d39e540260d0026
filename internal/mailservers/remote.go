package mailservers

import (
	"fmt"
	"strings"
)

// rewriting returns the words of a list that make a Postfix rewrite headers of the gate.
func rewriting(list string) string {
	for _, word := range listWords(list) {
		if word == "permit_mynetworks" || strings.HasPrefix(word, "static:") || strings.HasPrefix(word, "check_address_map") {
			return word
		}
	}
	return ""
}

func (s Settings) remoteLines() []Block {
	host, _ := s.HostPort()
	return []Block{{File: "/etc/postfix/" + mainCF, Do: "On " + host + `, if it runs Postfix; then run "postfix reload" there.`, Text: fmt.Sprintf(`# The gate sends mail over TLS only, and checks the certificate: it must be for
# %s, from an authority that the gate's machine trusts.
smtpd_tls_security_level = encrypt
smtpd_tls_chain_files = /etc/ssl/private/%s.pem
# Do not complete addresses in strangers' headers. (These are the defaults; never
# write permit_mynetworks or static:all into the first.)
local_header_rewrite_clients = permit_inet_interfaces
remote_header_rewrite_domain =
# The server sees the gate as the client of all mail. Its SPF, DNS blocklists and
# greylisting must let the gate's address pass, and mynetworks must not have it:
# the server would relay for the world.
`, host, host)}}
}

func (s Settings) checkRemote(text string) ([]Finding, error) {
	c, err := parsePostfix(text)
	if err != nil {
		return nil, err
	}
	var found []Finding
	level := c.main["smtpd_tls_security_level"]
	found = append(found, finding(mainCF, "smtpd_tls_security_level = encrypt", level, level == "encrypt" || level == "may",
		"the server does not offer STARTTLS, and the gate sends it no mail"))
	host, _ := s.HostPort()
	found = append(found, finding(mainCF, "smtpd_tls_chain_files = /etc/ssl/private/"+host+".pem", "", receiver{c, masterService{}}.certificate() != "",
		"the server has no certificate, and the gate sends it no mail"))
	if word := rewriting(c.main["local_header_rewrite_clients"]); word != "" {
		found = append(found, finding(mainCF, "local_header_rewrite_clients = permit_inet_interfaces", word, false,
			"Postfix completes addresses in strangers' headers after the gate has judged them"))
	}
	service := c.serviceAt(s.HostPort())
	if service == nil {
		service = &masterService{}
	}
	return append(append(found, s.checkPostfixMain(c)...), s.checkMail(c, *service)...), nil
}
