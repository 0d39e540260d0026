package mailservers

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	postfixGate = Settings{NextHop: "smtp://127.0.0.1:10025", Listen: []string{":25"}, XCLIENT: true}
	proxyGate   = Settings{NextHop: "smtp://127.0.0.1:10025", Listen: []string{":25"}, Proxy: true}
	socketGate  = Settings{NextHop: "lmtp+unix:/run/dovecot/lmtp", Listen: []string{":25"}}
	tcpGate     = Settings{NextHop: "lmtp://127.0.0.1:24", Listen: []string{":25"}}
	policyGate  = Settings{Door: "127.0.0.1:10040"}
	milterGate  = Settings{Door: "unix:/var/spool/postfix/spamgate/milter.sock"}
	remoteGate  = Settings{NextHop: "smtp://mx.example.net:25", Listen: []string{":25"}}
)

// The output of postconf, as far as it matters here.
const (
	postfixDefaults = "local_header_rewrite_clients = permit_inet_interfaces\nremote_header_rewrite_domain =\ninet_protocols = all\n" +
		"smtpd_authorized_xclient_hosts =\nsmtpd_authorized_xforward_hosts =\nsmtpd_upstream_proxy_protocol =\n" +
		"smtpd_relay_restrictions = permit_mynetworks, permit_sasl_authenticated, defer_unauth_destination\n" +
		"smtpd_sasl_auth_enable = no\nsmtpd_tls_auth_only = no\nsmtpd_tls_security_level =\nsmtpd_tls_cert_file =\nsmtpd_tls_chain_files =\n"
	postfixUnix  = "cleanup    unix  n       -       y       -       0       cleanup\n"
	postfixPort  = "127.0.0.1:10025 inet n   -       y       -       -       smtpd -o smtpd_authorized_xclient_hosts=127.0.0.1\n"
	postfixRight = `127.0.0.1:10025/inet/local_header_rewrite_clients =
127.0.0.1:10025/inet/smtpd_authorized_xclient_hosts = 127.0.0.1
127.0.0.1:10025/inet/smtpd_authorized_xforward_hosts = 127.0.0.0/8
127.0.0.1:10025/inet/smtpd_relay_restrictions = permit_mynetworks,reject_unauth_destination
`
	eximRight   = "local_interfaces = 127.0.0.1.10025\nhosts_proxy = 127.0.0.1\nsmtp_accept_max = 200\n"
	postfixSMTP = "smtp       inet  n       -       y       -       -       smtpd\n"
	postfixPass = "smtpd      pass  -       -       y       -       -       smtpd\n"

	policyLine  = "check_policy_service { inet:127.0.0.1:10040, default_action=DUNNO, timeout=5s }"
	policyEntry = "check_policy_service { inet:127.0.0.1:10040, default_action=DUNNO }\n"
	milterLine  = "smtpd_milters = { unix:spamgate/milter.sock, default_action=accept }"
)

// TestCheckShowsWhatIsThere wants the value of the file where the wanted line is only alike.
func TestCheckShowsWhatIsThere(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		gate Settings
		text string
		want Finding
	}{
		{PostfixMilter, Settings{Door: "127.0.0.1:30041"}, "smtpd_milters = inet:127.0.0.1:30041\n", Finding{Status: Present, File: mainCF, Line: "smtpd_milters = inet:127.0.0.1:30041"}},
		{PostfixPolicy, policyGate, "smtpd_helo_restrictions = check_policy_service inet:127.0.0.1:10040\n",
			Finding{Status: Present, File: mainCF, Line: "smtpd_helo_restrictions = check_policy_service inet:127.0.0.1:10040"}},
		{PostfixMilter, milterGate, postfixSMTP + "smtp/inet/smtpd_milters =\n" + milterLine + "\n", Finding{Status: Wrong, File: masterCF, Line: milterLine,
			Found: "smtp inet ... -o smtpd_milters=", Why: "Postfix does not ask the gate: this -o replaces the value of main.cf"}},
	} {
		found, err := Check(c.kind, c.gate, postfixDefaults+postfixUnix+c.text)
		if err != nil || len(found) == 0 || found[0] != c.want {
			t.Errorf("%q: %v, %+v", c.text, err, found)
		}
	}
}

// TestCheck compares configurations with what is found in them: each line that is not
// present, as "status: line or what is there".
func TestCheck(t *testing.T) {
	all := postfixDefaults + postfixUnix
	for _, c := range []struct {
		name string
		kind Kind
		gate Settings
		text string
		want []string
	}{
		{"right", Postfix, postfixGate, all + postfixPort + postfixRight, nil},
		{"nothing", Postfix, postfixGate, all + postfixSMTP, []string{
			"wrong: smtp inet ... smtpd", "missing: 127.0.0.1:10025 inet n - y - - smtpd", "missing: smtpd_authorized_xclient_hosts=127.0.0.1",
			"missing: smtpd_authorized_xforward_hosts=127.0.0.1", "missing: local_header_rewrite_clients=",
			"missing: smtpd_relay_restrictions=permit_mynetworks,permit_sasl_authenticated,reject_unauth_destination"}},
		{"the service alone", Postfix, postfixGate, all + postfixPort, []string{
			"missing: smtpd_authorized_xclient_hosts=127.0.0.1", "missing: smtpd_authorized_xforward_hosts=127.0.0.1", "missing: local_header_rewrite_clients=",
			"missing: smtpd_relay_restrictions=permit_mynetworks,permit_sasl_authenticated,reject_unauth_destination"}},
		{"in main.cf", Postfix, postfixGate, all + postfixPort + "smtpd_authorized_xclient_hosts = 10.0.0.1, 127.0.0.1\nsmtpd_authorized_xforward_hosts = !10.0.0.1 127.0.0.1\n" +
			"local_header_rewrite_clients =\nsmtpd_relay_restrictions = reject_unauth_destination\n", nil},
		{"another host", Postfix, postfixGate, all + postfixPort + strings.Replace(postfixRight, "xclient_hosts = 127.0.0.1", "xclient_hosts = 192.0.2.1", 1),
			[]string{"wrong: smtpd_authorized_xclient_hosts=127.0.0.1"}},
		{"excluded host", Postfix, postfixGate, all + postfixPort + strings.Replace(postfixRight, "xclient_hosts = 127.0.0.1", "xclient_hosts = !127.0.0.1, 127.0.0.0/8", 1),
			[]string{"wrong: smtpd_authorized_xclient_hosts=127.0.0.1"}},
		{"a table", Postfix, postfixGate, all + postfixPort + strings.Replace(postfixRight, "xclient_hosts = 127.0.0.1", "xclient_hosts = cidr:/etc/postfix/gates", 1),
			[]string{"unknown: smtpd_authorized_xclient_hosts=127.0.0.1"}},
		{"defer", Postfix, postfixGate, all + postfixPort + strings.Replace(postfixRight, "reject_unauth", "defer_unauth", 1),
			[]string{"wrong: smtpd_relay_restrictions=permit_mynetworks,permit_sasl_authenticated,reject_unauth_destination"}},
		{"port 25 as a number", Postfix, postfixGate, all + postfixPort + postfixRight + "192.0.2.1:25 inet n - y - - smtpd\n", []string{"wrong: 192.0.2.1:25 inet ... smtpd"}},
		{"port 25 is free for Postfix", Postfix, with(postfixGate, func(s *Settings) { s.Listen = []string{"192.0.2.2:25", "127.0.0.1:2525"} }),
			all + postfixPort + postfixRight + "192.0.2.1:25 inet n - y - - smtpd\n", nil},
		{"systemd's sockets", Postfix, with(postfixGate, func(s *Settings) { s.Listen = []string{"systemd"} }), all + postfixPort + postfixRight + postfixSMTP,
			[]string{"wrong: smtp inet ... smtpd"}},
		{"postscreen", Postfix, postfixGate, all + strings.Replace(postfixPort, "smtpd ", "postscreen ", 1), []string{
			"wrong: 127.0.0.1:10025 inet n - y - - smtpd", "missing: smtpd_authorized_xclient_hosts=127.0.0.1",
			"missing: smtpd_authorized_xforward_hosts=127.0.0.1", "missing: local_header_rewrite_clients=",
			"missing: smtpd_relay_restrictions=permit_mynetworks,permit_sasl_authenticated,reject_unauth_destination"}},
		{"every address", Postfix, postfixGate, all + strings.ReplaceAll(postfixPort+postfixRight, "127.0.0.1:10025", "10025"), []string{
			"advice: 127.0.0.1:10025 inet n - y - - smtpd"}},
		{"remote_header_rewrite_domain", Postfix, postfixGate, all + "remote_header_rewrite_domain = domain.invalid\n" + postfixPort + postfixRight,
			[]string{"wrong: remote_header_rewrite_domain ="}},
		{"IPv4 only", Postfix, postfixGate, all + "inet_protocols = ipv4\n" + postfixPort + postfixRight, []string{"advice: inet_protocols = all"}},
		{"IPv4 only, as the gate", Postfix, with(postfixGate, func(s *Settings) { s.Listen = []string{"0.0.0.0:25"} }), all + "inet_protocols = ipv4\n" + postfixPort + postfixRight, nil},
		{"logins", Postfix, with(postfixGate, func(s *Settings) { s.Logins, s.Listen = true, []string{":25", ":587"} }),
			all + "smtpd_tls_auth_only = yes\n" + postfixPort + postfixRight + "submission inet n - y - - smtpd\n",
			[]string{"wrong: submission inet ... smtpd", "missing: smtpd_sasl_auth_enable=yes", "missing: smtpd_tls_auth_only=no"}},
		{"PROXY protocol", Postfix, proxyGate, all + postfixPort + postfixRight, []string{"missing: smtpd_upstream_proxy_protocol=haproxy"}},
		{"XFORWARD and mynetworks", Postfix, with(postfixGate, func(s *Settings) { s.XCLIENT = false }), all + postfixPort + postfixRight,
			[]string{"wrong: smtpd_relay_restrictions=permit_sasl_authenticated,reject_unauth_destination"}},
		{"IPv6", Postfix, with(postfixGate, func(s *Settings) { s.NextHop = "smtp://[::1]:10025" }),
			all + strings.NewReplacer("127.0.0.1:10025", "[::1]:10025", "hosts = 127.0.0.1", "hosts = [::1]", "127.0.0.0/8", "[::1]/128").Replace(postfixPort+postfixRight), nil},

		{"right", PostfixPolicy, policyGate, all + "smtpd_delay_reject = yes\nsmtpd_recipient_restrictions = permit_mynetworks, reject_unauth_destination, " + policyEntry, nil},
		{"nothing", PostfixPolicy, policyGate, all, []string{"missing: " + policyLine}},
		{"without braces", PostfixPolicy, policyGate, all + "smtpd_recipient_restrictions = reject_unauth_destination check_policy_service inet:localhost:10040\n",
			[]string{"advice: " + policyLine}},
		{"without braces, DUNNO", PostfixPolicy, policyGate, all + "smtpd_policy_service_default_action = dunno\nsmtpd_recipient_restrictions = reject_unauth_destination check_policy_service inet:localhost:10040\n", nil},
		{"another service", PostfixPolicy, policyGate, all + "smtpd_recipient_restrictions = reject_unauth_destination, check_policy_service unix:private/postgrey\n",
			[]string{"wrong: " + policyLine}},
		{"the address elsewhere", PostfixPolicy, policyGate, all + "smtpd_recipient_restrictions = reject_unauth_destination, check_policy_service { unix:private/postgrey, policy_context=inet:127.0.0.1:10040 }\n",
			[]string{"wrong: " + policyLine}},
		{"after permit", PostfixPolicy, policyGate, all + "smtpd_recipient_restrictions = reject_unauth_destination, permit, " + policyEntry, []string{"wrong: " + policyLine + " before permit"}},
		{"after reject", PostfixPolicy, policyGate, all + "smtpd_recipient_restrictions = permit_mynetworks, REJECT, " + policyEntry, []string{"wrong: " + policyLine + " before REJECT"}},
		{"after a warning", PostfixPolicy, policyGate, all + "smtpd_recipient_restrictions = reject_unauth_destination, warn_if_reject reject, check_client_access { inline:{ a=permit }, permit } " + policyEntry, nil},
		{"before permit", PostfixPolicy, policyGate, all + strings.Replace("smtpd_recipient_restrictions = reject_unauth_destination, "+policyEntry, "\n", ", permit\n", 1), nil},
		{"after permit, and elsewhere", PostfixPolicy, policyGate, all + "smtpd_sender_restrictions = " + policyEntry + "smtpd_recipient_restrictions = permit, " + policyEntry, nil},
		{"first", PostfixPolicy, policyGate, all + "smtpd_recipient_restrictions = " + strings.TrimSpace(policyEntry) + ", reject_unauth_destination\n",
			[]string{"advice: reject_unauth_destination before check_policy_service"}},
		{"first, but relaying is refused before", PostfixPolicy, policyGate, all + "smtpd_relay_before_recipient_restrictions = yes\nsmtpd_recipient_restrictions = " + policyEntry, nil},
		{"relaying is permitted before", PostfixPolicy, policyGate, all + "smtpd_relay_before_recipient_restrictions = yes\nsmtpd_relay_restrictions =\nsmtpd_recipient_restrictions = " + policyEntry,
			[]string{"advice: reject_unauth_destination before check_policy_service"}},
		{"after another service", PostfixPolicy, policyGate, all + "smtpd_recipient_restrictions = check_policy_service inet:127.0.0.1:10023, reject_unauth_destination, " + policyEntry, nil},
		{"for relaying", PostfixPolicy, policyGate, all + "smtpd_relay_restrictions = reject_unauth_destination, " + policyEntry, nil},
		{"for senders", PostfixPolicy, policyGate, all + "smtpd_delay_reject = yes\nsmtpd_sender_restrictions = " + policyEntry, nil},
		{"no delay", PostfixPolicy, policyGate, all + "smtpd_delay_reject = no\nsmtpd_client_restrictions = " + policyEntry, []string{"wrong: smtpd_delay_reject = yes"}},
		{"no delay, and not needed", PostfixPolicy, policyGate, all + "smtpd_delay_reject = no\nsmtpd_recipient_restrictions = reject_unauth_destination, " + policyEntry, nil},
		{"for DATA", PostfixPolicy, policyGate, all + "smtpd_data_restrictions = " + policyEntry, []string{"advice: check_policy_service in smtpd_recipient_restrictions"}},
		{"master.cf replaces it", PostfixPolicy, policyGate, all + postfixSMTP + "smtp/inet/smtpd_recipient_restrictions = permit_mynetworks,reject\nsmtpd_recipient_restrictions = reject_unauth_destination, " + policyEntry,
			[]string{"wrong: " + policyLine}},
		{"master.cf has it", PostfixPolicy, policyGate, all + postfixSMTP + "smtp/inet/smtpd_recipient_restrictions = reject_unauth_destination " + policyEntry, nil},
		{"after postscreen", PostfixPolicy, policyGate, all + postfixPass + "smtpd/pass/smtpd_recipient_restrictions =\nsmtpd_recipient_restrictions = reject_unauth_destination, " + policyEntry,
			[]string{"wrong: " + policyLine}},
		{"other services replace it", PostfixPolicy, policyGate, all + postfixSMTP + strings.ReplaceAll(postfixSMTP, "smtp  ", "submission  ") + strings.ReplaceAll(postfixSMTP, "smtp   ", "localhost:25  ") +
			"submission/inet/smtpd_recipient_restrictions = reject\nlocalhost:25/inet/smtpd_recipient_restrictions =\nsmtpd_recipient_restrictions = reject_unauth_destination, " + policyEntry, nil},

		{"right", PostfixMilter, milterGate, all + "smtpd_milters = { unix:spamgate/milter.sock, default_action=accept }, inet:localhost:8891\n", nil},
		{"the whole path", PostfixMilter, milterGate, all + "milter_default_action = accept\nsmtpd_milters = unix:/var/spool/postfix/spamgate/milter.sock\n", nil},
		{"without braces", PostfixMilter, milterGate, all + "milter_default_action = tempfail\nsmtpd_milters = inet:localhost:8891, unix:spamgate/milter.sock\n", []string{"advice: { unix:spamgate/milter.sock, default_action=accept } in smtpd_milters"}},
		{"nothing", PostfixMilter, milterGate, all + "smtpd_milters =\n", []string{"missing: " + milterLine}},
		{"another", PostfixMilter, milterGate, all + "smtpd_milters = inet:localhost:8891\n", []string{"wrong: " + milterLine}},
		{"master.cf replaces it", PostfixMilter, milterGate, all + postfixSMTP + "smtp/inet/smtpd_milters =\n" + milterLine + "\n", []string{"wrong: " + milterLine}},
		{"one of two services", PostfixMilter, milterGate, all + postfixSMTP + postfixPass + "smtpd/pass/smtpd_milters =\n" + milterLine + "\n", []string{"wrong: " + milterLine}},
		{"two services, one line", PostfixMilter, milterGate, all + postfixSMTP + postfixPass + "smtpd/pass/receive_override_options = no_milters\n" + milterLine + "\n",
			[]string{"wrong: smtpd pass ... -o receive_override_options=no_milters"}},
		{"no_milters", PostfixMilter, milterGate, all + "receive_override_options = no_address_mappings,no_milters\n" + milterLine + "\n",
			[]string{"wrong: receive_override_options = no_address_mappings,no_milters"}},
		{"mail of programs", PostfixMilter, milterGate, all + milterLine + "\nnon_smtpd_milters = inet:localhost:8891, unix:spamgate/milter.sock\n",
			[]string{"wrong: non_smtpd_milters = inet:localhost:8891, unix:spamgate/milter.sock"}},
		{"another for mail of programs", PostfixMilter, milterGate, all + milterLine + "\nnon_smtpd_milters = inet:localhost:8891\n", nil},

		{"right", Exim, proxyGate, "local_interfaces = 127.0.0.1.10025\nhosts_proxy = 127.0.0.1\nsmtp_accept_max = 200\n", nil},
		{"defaults", Exim, proxyGate, "daemon_smtp_ports = smtp\nhosts_proxy = \nlocal_interfaces = <; ::0 ; 0.0.0.0\nsmtp_accept_max = 20\n", []string{
			"wrong: local_interfaces = 127.0.0.1.10025", "wrong: port 25 of :: in local_interfaces", "wrong: port 25 of 0.0.0.0 in local_interfaces",
			"missing: hosts_proxy = 127.0.0.1", "advice: smtp_accept_max = 200"}},
		{"a list", Exim, proxyGate, "local_interfaces = <; [127.0.0.1]:10025 ; 192.0.2.1.587\nhosts_proxy = <; ::1 ; 127.0.0.0/8\nsmtp_accept_max = 0\n", nil},
		{"ports", Exim, proxyGate, "local_interfaces = 127.0.0.1\ndaemon_smtp_ports = 10025 : 587\nhosts_proxy = *\nsmtp_accept_max = 100\n", nil},
		{"IPv6 with doubled colons", Exim, with(proxyGate, func(s *Settings) { s.NextHop = "smtp://[::1]:10025" }),
			"local_interfaces = 127.0.0.1.587 : ::::1.10025\nhosts_proxy = ::::1\nsmtp_accept_max = 100\n", nil},
		{"not the gate", Exim, proxyGate, "local_interfaces = 127.0.0.1.10025\nhosts_proxy = !127.0.0.1 : *\nsmtp_accept_max = 100\n", []string{"wrong: hosts_proxy = 127.0.0.1"}},
		{"a named list", Exim, proxyGate, "local_interfaces = 127.0.0.1.10025\nhosts_proxy = +gates\nsmtp_accept_max = 100\n", []string{"unknown: hosts_proxy = 127.0.0.1"}},
		{"macros", Exim, proxyGate, "# a comment\nlocal_interfaces = MAIN_LOCAL_INTERFACES\nhosts_proxy = 127.0.0.1\nsmtp_accept_max = 100\nbegin acl\nlocal_interfaces = 127.0.0.1.10025\n",
			[]string{"unknown: local_interfaces = 127.0.0.1.10025"}},
		{"continued", Exim, proxyGate, "local_interfaces = 127.0.0.1.587 : \\\n   # a comment\n   127.0.0.1.10025\nhide hosts_proxy = 127.0.0.1\nsmtp_accept_max = 100\n", nil},

		{"without PROXY support", Exim, proxyGate, eximRight + "Exim version 4.96 #2 built 27-May-2026 16:52:26\nSupport for: crypteq IPv6 GnuTLS SOCKS TCP_Fast_Open\n",
			[]string{"wrong: Support for: ... PROXY"}},
		{"with PROXY support", Exim, proxyGate, eximRight + "Support for: crypteq IPv6 PRDR PROXY SOCKS\nFixed never_users: 0\n", nil},
		{"the gate sends no header", Exim, with(proxyGate, func(s *Settings) { s.Proxy = false }), eximRight + "Support for: IPv6\n", []string{"wrong: hosts_proxy ="}},
		{"no header on both sides", Exim, with(proxyGate, func(s *Settings) { s.Proxy = false }), strings.Replace(eximRight, "hosts_proxy = 127.0.0.1", "hosts_proxy =", 1), nil},

		{"right", OpenSMTPD, proxyGate, "listen on socket\nlisten on 127.0.0.1 port 10025 proxy-v2\n", nil},
		{"interface and macro", OpenSMTPD, proxyGate, "gate = \"10025\"\nlisten on lo port $gate proxy-v2 hostname a.example # the gate\n", nil},
		{"Debian's", OpenSMTPD, proxyGate, "table aliases file:/etc/aliases\nlisten on localhost\n", []string{
			"wrong: listen on localhost", "missing: listen on 127.0.0.1 port 10025 proxy-v2"}},
		{"without proxy-v2", OpenSMTPD, proxyGate, "listen on lo0 port 10025\n", []string{"wrong: listen on 127.0.0.1 port 10025 proxy-v2"}},
		{"other ports", OpenSMTPD, proxyGate, "listen on eth0 smtps pki a\nlisten on eth0 port submission tls-require\nlisten on lo port 10025 proxy-v2\n", nil},
		{"an interface", OpenSMTPD, proxyGate, "listen on eth0 \\\n  tls pki a\nlisten on lo port 10025 proxy-v2\n", []string{"wrong: listen on eth0 tls pki a"}},
		{"tls and smtps", OpenSMTPD, proxyGate, "listen on all tls smtps pki a\nlisten on lo port 10025 proxy-v2\n", []string{"wrong: listen on all tls smtps pki a"}},
		{"another address", OpenSMTPD, with(proxyGate, func(s *Settings) { s.Listen = []string{"192.0.2.1:25"} }), "listen on 192.0.2.2\nlisten on lo port 10025 proxy-v2\n", nil},

		{"default socket", LMTP, socketGate, "protocols = imap lmtp\n", nil},
		{"off", LMTP, socketGate, "protocols = imap\n", []string{"wrong: protocols = $protocols lmtp"}},
		{"2.4", LMTP, socketGate, "protocols {\n  imap = yes\n  lmtp = yes\n}\nservice lmtp {\n  unix_listener lmtp {\n    mode = 0600\n    user = spamgate\n  }\n}\n", nil},
		{"another user's", LMTP, socketGate, "protocols = lmtp\nservice lmtp {\n  unix_listener lmtp {\n    mode = 0660\n    user = dovecot\n    group = postfix\n  }\n}\n",
			[]string{"wrong: service lmtp { unix_listener lmtp { mode = 0666 } }"}},
		{"the gate's group", LMTP, socketGate, "protocols = lmtp\nservice lmtp {\n  unix_listener lmtp {\n    mode = 0660\n    group = spamgate\n  }\n}\n", nil},
		{"another socket", LMTP, with(socketGate, func(s *Settings) { s.NextHop = "lmtp+unix:/var/spool/gate/lmtp" }), "protocols = lmtp\nservice lmtp {\n  unix_listener lmtp {\n  }\n}\n",
			[]string{"missing: service lmtp { unix_listener /var/spool/gate/lmtp { mode = 0666 } }"}},
		{"mode 0", LMTP, socketGate, "protocols = lmtp\nservice lmtp {\n  unix_listener lmtp {\n    mode = 0\n  }\n}\n",
			[]string{"wrong: service lmtp { unix_listener lmtp { mode = 0666 } }"}},
		{"base_dir", LMTP, with(socketGate, func(s *Settings) { s.NextHop = "lmtp+unix:/srv/d/gate" }), "base_dir = /srv/d\nprotocols = \" lmtp\"\nservice lmtp {\n  unix_listener gate {\n  }\n}\n", nil},
		{"TCP", LMTP, tcpGate, "protocols = lmtp\nservice lmtp {\n  inet_listener lmtp {\n    address = 192.0.2.1 127.0.0.1\n    port = 24\n  }\n}\n", nil},
		{"TCP, another port", LMTP, tcpGate, "protocols = lmtp\nservice lmtp {\n  inet_listener lmtp {\n    port = 2424\n  }\n}\n",
			[]string{"missing: service lmtp { inet_listener lmtp { address = 127.0.0.1 port = 24 } }"}},

		{"system users", LMTP, socketGate, "protocols = lmtp\nauth_username_format = %Lu\npassdb {\n  driver = pam\n}\nuserdb {\n  driver = passwd\n}\n", []string{"wrong: auth_username_format = %Ln"}},
		{"system users, doveconf -n", LMTP, socketGate, "protocols = lmtp\nuserdb {\n  driver = passwd\n}\n", []string{"missing: auth_username_format = %Ln"}},
		{"system users, 2.4", LMTP, socketGate, "dovecot_config_version = 2.4.0\nprotocols = lmtp\nauth_username_format = %{user | lower}\nuserdb passwd {\n}\n",
			[]string{"wrong: auth_username_format = %{user | username | lower}"}},
		{"system users without the domain", LMTP, socketGate, "protocols = lmtp\nauth_username_format = %Ln\nuserdb {\n  driver = passwd\n}\n", nil},
		{"system users without the domain, 2.4", LMTP, socketGate, "protocols = lmtp\nauth_username_format = %{user | username | lower}\nuserdb passwd {\n}\n", nil},
		{"system users without the domain, in LMTP", LMTP, socketGate, "protocols = lmtp\nuserdb {\n  driver = passwd\n}\nprotocol lmtp {\n  auth_username_format = %n\n}\n", nil},
		{"system users and others", LMTP, socketGate, "protocols = lmtp\nuserdb {\n  driver = passwd\n}\nuserdb {\n  driver = sql\n}\n", []string{"advice: auth_username_format = %Ln"}},
		{"virtual users", LMTP, socketGate, "protocols = lmtp\nauth_username_format = %Lu\nuserdb {\n  args = /etc/dovecot/users\n  driver = passwd-file\n}\nuserdb sql {\n}\n", nil},

		{"encrypt and proxies", Remote, remoteGate, all + "smtpd_tls_security_level = encrypt\nsmtpd_tls_eccert_file = /a.pem\nheader_size_limit = 4096\n" + postfixSMTP +
			"smtp/inet/smtpd_upstream_proxy_protocol = haproxy\nsmtp/inet/smtpd_recipient_restrictions = permit_sasl_authenticated,reject\nsmtp/unix/smtp_line_length_limit = 512\n", []string{
			"wrong: smtpd_upstream_proxy_protocol=", "wrong: smtpd_recipient_restrictions=permit_sasl_authenticated,reject_unauth_destination",
			"wrong: header_size_limit = 102400", "wrong: smtp_line_length_limit = 998"}},
		{"right", Remote, remoteGate, all + "smtpd_tls_security_level = may\nsmtpd_tls_chain_files = /a.pem\n", nil},
		{"no TLS", Remote, remoteGate, all, []string{"missing: smtpd_tls_security_level = encrypt", "missing: smtpd_tls_chain_files = /etc/ssl/private/mx.example.net.pem"}},
		{"rewriting", Remote, remoteGate, all + "smtpd_tls_security_level = may\nsmtpd_tls_cert_file = /a.pem\nlocal_header_rewrite_clients = permit_mynetworks\n",
			[]string{"wrong: local_header_rewrite_clients = permit_inet_interfaces"}},
	} {
		t.Run(string(c.kind)+"/"+c.name, func(t *testing.T) {
			found, err := Check(c.kind, c.gate, c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got := problems(found); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// problems returns the findings that are not present.
func problems(found []Finding) (all []string) {
	for _, f := range found {
		line := strings.TrimPrefix(f.Line, "    -o ")
		if line == "" {
			line = f.Found
		}
		switch {
		case f.Status == Present:
			if f.Why != "" || f.Found != "" {
				all = append(all, fmt.Sprintf("present, with %q and %q", f.Why, f.Found))
			}
			continue
		case f.Why == "":
			all = append(all, "no reason for "+line)
		case f.Advice:
			all = append(all, "advice: "+line)
			continue
		}
		all = append(all, string(f.Status)+": "+line)
	}
	return all
}

// TestCheckOtherText gives Check what is not a configuration of the server.
func TestCheckOtherText(t *testing.T) {
	for kind, text := range map[Kind]string{
		Postfix: "smtpd_banner = a\n", Remote: "", Exim: "Subject: hello\n", OpenSMTPD: "<html>\n", LMTP: "service lmtp {\n", Maildir: "",
	} {
		if found, err := Check(kind, postfixGate, text); err == nil {
			t.Errorf("%s: %q gives %v, want an error", kind, text, found)
		}
	}
	if _, err := Check(LMTP, socketGate, "}\n"); err == nil {
		t.Error("a brace that closes nothing gives no error")
	}
}

// TestLinesAreFound reads the lines that are printed as a configuration: nothing is
// missing.
func TestLinesAreFound(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		gate Settings
		rest string
	}{
		{Exim, proxyGate, ""},
		{Exim, Settings{NextHop: "smtp://[::1]:10025", Listen: []string{":25"}, Proxy: true}, ""},
		{Exim, Settings{NextHop: "smtp://localhost:10025", Listen: []string{":25"}, Proxy: true}, ""},
		{OpenSMTPD, proxyGate, ""},
		{OpenSMTPD, Settings{NextHop: "smtp://[::1]:10025", Listen: []string{":25"}, Proxy: true}, ""},
		{LMTP, socketGate, ""},
		{LMTP, Settings{NextHop: "lmtp+unix:/srv/gate/lmtp"}, ""},
		{LMTP, tcpGate, ""},
		{Remote, remoteGate, postfixUnix},
		{PostfixMilter, milterGate, postfixUnix},
	} {
		blocks, _ := Lines(c.kind, c.gate)
		found, err := Check(c.kind, c.gate, c.rest+blocks[0].Text)
		if got := problems(found); err != nil || len(got) > 0 {
			t.Errorf("%s, %s: %v, %q in:\n%s", c.kind, c.gate.NextHop, err, got, blocks[0].Text)
		}
	}
}

func TestInNetworks(t *testing.T) {
	addr := netip.MustParseAddr("127.0.0.1")
	for list, want := range map[string][2]bool{
		"": {false, true}, "127.0.0.1": {true, true}, "10.0.0.0/8 127.0.0.0/8": {true, true}, "!127.0.0.1 127.0.0.0/8": {false, true},
		"static:all": {true, true}, "hash:/a": {false, false}, "hash:/a, 127.0.0.1": {true, false}, "/etc/gates": {false, false}, "mx.example.net": {false, true},
		"localhost": {true, true}, "[::1]/128": {false, true},
	} {
		if in, known := inNetworks(list, addr); in != want[0] || !in && known != want[1] {
			t.Errorf("%q: %t, %t; want %v", list, in, known, want)
		}
	}
}

func TestMailLog(t *testing.T) {
	root := t.TempDir()
	if log := MailLog(root, Exim); log != "" {
		t.Errorf("no log is %s", log)
	}
	write := func(name, text string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("var/log/mail.log", "")
	write("var/log/mail/mail.log", "a line\n")
	if log := MailLog(root, Exim); log != filepath.Join(root, "var/log/mail/mail.log") {
		t.Errorf("the log is %q", log)
	}
	write("var/log/exim4/mainlog", "a line\n")
	if log := MailLog(root, Exim); log != filepath.Join(root, "var/log/exim4/mainlog") {
		t.Errorf("Exim's log is %q", log)
	}
	if log := MailLog(root, Postfix); log != filepath.Join(root, "var/log/mail/mail.log") {
		t.Errorf("Postfix's log is %q", log)
	}
}

// FuzzCheck wants no panic, whatever a file holds.
func FuzzCheck(f *testing.F) {
	f.Add(postfixDefaults + postfixUnix + postfixPort + postfixRight)
	f.Add(postfixDefaults + postfixSMTP + "smtp/inet/smtpd_milters = {\nsmtpd_recipient_restrictions = permit, check_policy_service { inet:127.0.0.1:10040 }}\n")
	f.Add("local_interfaces = <; [::1]:25 ; 1.2.3.4.5\nhosts_proxy = <")
	f.Add("listen on $a port\na = \"b\n\\\nlisten on all tls smtps")
	f.Add("protocols = lmtp\nservice lmtp {\n inet_listener {\n port = 24\n}\n}\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range Kinds {
			for _, gate := range []Settings{postfixGate, proxyGate, socketGate, tcpGate, policyGate, milterGate} {
				found, err := Check(kind, gate, text)
				if err == nil && len(found) == 0 {
					t.Errorf("%s: neither a finding nor an error", kind)
				}
			}
		}
	})
}
