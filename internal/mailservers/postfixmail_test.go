package mailservers

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRealPostfix has the machine's postconf read main.cf and master.cf with the lines that init
// prints, and with parameters that break or change the gate's mail.
func TestRealPostfix(t *testing.T) {
	if _, err := FindProgram("postconf"); err != nil {
		t.Skipf("install postfix: %v", err)
	}
	t.Parallel()
	plain := with(postfixGate, func(s *Settings) { s.XCLIENT = false })
	const (
		filter = "content_filter = scan:[127.0.0.1]:10024\n"
		back   = "127.0.0.1:10027 inet n - n - - smtpd\n -o content_filter=\n"
		cut    = "wrong: header_size_limit = 102400"
	)
	for _, c := range []struct {
		name       string
		gate       Settings
		main       string // more of main.cf
		own        string // more options of the gate's service
		services   string // more of master.cf
		want       []string
		wantInFull string // a part of a finding
	}{
		{"defaults", postfixGate, "", "", "", nil, ""},
		{"defaults, XFORWARD", plain, "", "", "", nil, ""},
		{"defaults, PROXY", proxyGate, "", "", "", nil, ""},
		{"defaults, logins", with(postfixGate, func(s *Settings) { s.Logins = true }), "", "", "", nil, ""},

		{"encrypt", postfixGate, "smtpd_tls_security_level = encrypt\n", "", "", []string{"wrong: smtpd_tls_security_level=may"}, "main.cf: smtpd_tls_security_level = encrypt"},
		{"encrypt, a certificate", postfixGate, "smtpd_tls_security_level = encrypt\nsmtpd_tls_chain_files = /a.pem\n", "", "", []string{"advice: smtpd_tls_security_level=may"}, "/a.pem"},
		{"encrypt, and the gate uses TLS", with(postfixGate, func(s *Settings) { s.TLS = true }), "smtpd_tls_security_level = encrypt\n", "", "", nil, ""},
		{"encrypt in -o", postfixGate, "smtpd_tls_security_level = may\n", " -o smtpd_tls_security_level=encrypt\n", "", []string{"wrong: smtpd_tls_security_level=may"},
			"master.cf: 127.0.0.1:10025 inet ... -o smtpd_tls_security_level=encrypt"},
		{"may in -o", postfixGate, "smtpd_tls_security_level = encrypt\n", " -o smtpd_tls_security_level=may\n", "", nil, ""},
		{"encrypt in another's -o", postfixGate, "", "", "2587 inet n - n - - smtpd\n -o smtpd_tls_security_level=encrypt\n", nil, ""},
		{"the older parameter", postfixGate, "smtpd_enforce_tls = yes\n", "", "", []string{"wrong: smtpd_tls_security_level=may"}, "main.cf: smtpd_enforce_tls = yes"},
		{"the level takes precedence", postfixGate, "smtpd_enforce_tls = yes\nsmtpd_tls_security_level = may\n", "", "", nil, ""},
		{"TLS from the first byte", postfixGate, "", " -o smtpd_tls_wrappermode=yes\n", "", []string{"wrong: smtpd_tls_wrappermode=no"}, ""},

		{"a PROXY header that does not come", postfixGate, "smtpd_upstream_proxy_protocol = haproxy\n", "", "", []string{"wrong: smtpd_upstream_proxy_protocol="}, "proxy in [next_hop]"},
		{"a PROXY header that nobody reads", proxyGate, "", " -o smtpd_upstream_proxy_protocol=\n", "", []string{"wrong: smtpd_upstream_proxy_protocol=haproxy"}, ""},

		{"clients", postfixGate, "smtpd_client_restrictions = permit_mynetworks, permit_sasl_authenticated, reject\n", "", "", []string{"wrong: smtpd_client_restrictions="}, "every client that the gate names"},
		{"clients by $name", postfixGate, "mine = permit_mynetworks,\n reject\nsmtpd_client_restrictions = $mine\n", "", "", []string{"wrong: smtpd_client_restrictions="}, ""},
		{"recipients", postfixGate, "smtpd_recipient_restrictions = reject_unauth_pipelining permit_mynetworks defer\n", "", "",
			[]string{"wrong: smtpd_recipient_restrictions=reject_unauth_pipelining,permit_mynetworks,reject_unauth_destination"}, ""},
		{"relaying", postfixGate, "", " -o smtpd_relay_restrictions=permit_mynetworks,permit_sasl_authenticated,reject\n", "",
			[]string{"wrong: smtpd_relay_restrictions=permit_mynetworks,permit_sasl_authenticated,reject_unauth_destination"}, ""},
		{"the gate in mynetworks", plain, "mynetworks = 127.0.0.0/8\nsmtpd_client_restrictions = permit_mynetworks, reject\n", "", "", nil, ""},
		{"loopback not in mynetworks", plain, "mynetworks = 192.0.2.0/24\nsmtpd_client_restrictions = permit_mynetworks, reject\n", "", "", []string{"wrong: smtpd_client_restrictions="}, "no client of mynetworks"},
		{"a table may permit", postfixGate, "smtpd_client_restrictions = check_client_access cidr:/etc/postfix/clients, reject\n", "", "", nil, ""},
		{"after permit, and a warning", postfixGate, "smtpd_client_restrictions = permit, reject\nsmtpd_sender_restrictions = warn_if_reject reject\n", "", "", nil, ""},

		{"header_size_limit", postfixGate, "header_size_limit = 8192\n", "", "", []string{cut}, "cuts header fields there"},
		{"header_size_limit of cleanup", postfixGate, "", "", "other unix n - n - 0 cleanup\n -o header_size_limit=8192\n", []string{cut}, "other/unix ... -o header_size_limit = 8192"},
		{"a larger one", postfixGate, "header_size_limit = 204800\n", "", "", []string{"advice: header_size_limit = 102400"}, ""},
		{"no header", postfixGate, "header_size_limit = 0\n", "", "", []string{cut}, ""},
		{"line limits", postfixGate, "line_length_limit = 1024\nlmtp_line_length_limit = 0\n", "", "out unix - - n - - smtp\n -o smtp_line_length_limit=500\n",
			[]string{"wrong: line_length_limit = 2048", "advice: lmtp_line_length_limit = 998", "wrong: smtp_line_length_limit = 998"}, "out/unix ... -o smtp_line_length_limit = 500"},

		{"a filter", postfixGate, filter, "", back, []string{"wrong: local_header_rewrite_clients=", "advice: receive_override_options=no_address_mappings"}, "127.0.0.1:10027 inet ... smtpd"},
		{"a filter as it should be", postfixGate, filter, "", back + " -o local_header_rewrite_clients=\n -o receive_override_options=no_header_body_checks,no_address_mappings\n", nil, ""},
		{"addresses mapped after it", postfixGate, filter, " -o receive_override_options=no_address_mappings\n", back + " -o local_header_rewrite_clients=\n", nil, ""},
		{"a filter with sendmail", postfixGate, filter, "", "", []string{"advice: content_filter = scan:[127.0.0.1]:10024"}, "sendmail command"},
		{"a filter of another service", postfixGate, "", "", "2587 inet n - n - - smtpd\n -o content_filter=scan:[127.0.0.1]:10024\n", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			blocks, _ := Lines(Postfix, c.gate)
			dir := t.TempDir()
			for name, text := range map[string]string{
				mainCF: "compatibility_level = 3.6\nmyhostname = mx.example.org\n" + c.main,
				// init's lines are indented by "    -o"; later ones of a name replace them.
				masterCF: "cleanup unix n - n - 0 cleanup\n" + blocks[0].Text + c.own + c.services,
			} {
				// Postfix reads a file again after a second that has just been written.
				file, old := filepath.Join(dir, name), time.Unix(1e9, 0)
				if err := errors.Join(os.WriteFile(file, []byte(text), 0o644), os.Chtimes(file, old, old)); err != nil {
					t.Fatal(err)
				}
			}
			text, _, err := Read(t.Context(), Postfix, dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			found, err := Check(Postfix, c.gate, text)
			if err != nil {
				t.Fatal(err)
			}
			if got := problems(found); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			if !slices.ContainsFunc(found, func(f Finding) bool { return strings.Contains(f.Found+"\n"+f.Why, c.wantInFull) }) {
				t.Errorf("no finding says %q: %+v", c.wantInFull, found)
			}
		})
	}
}

// with returns settings with a change.
func with(s Settings, change func(*Settings)) Settings {
	change(&s)
	return s
}
