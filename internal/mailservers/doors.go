package mailservers

import (
	"fmt"
	"net"
	"strings"
)

// The kinds of programs that ask the gate, which is not before them.
const (
	PostfixPolicy Kind = "postfix-policy" // Postfix with check_policy_service
	PostfixMilter Kind = "postfix-milter" // Postfix with smtpd_milters
	Rspamd        Kind = "rspamd"         // rspamd, over DNS
	DNS           Kind = "dns"            // Postfix or Exim, over DNS
)

// Asks reports whether the server asks the gate about mail, and gets no mail from it.
func (k Kind) Asks() bool { return k.asksPostfix() || k.AsksDNS() }

func (k Kind) asksPostfix() bool { return k == PostfixPolicy || k == PostfixMilter }

// AsksDNS reports whether the server asks over DNS.
func (k Kind) AsksDNS() bool { return k == Rspamd || k == DNS }

// queueDirectory is Postfix's, the root directory of its chrooted services.
const queueDirectory = "/var/spool/postfix/"

// postfixDoor returns the address of the door as Postfix writes it. A path below the queue
// directory is relative, so that chrooted services find it too.
func (s Settings) postfixDoor() string {
	path, ok := strings.CutPrefix(s.Door, "unix:")
	if !ok {
		host, port, _ := net.SplitHostPort(s.Door)
		if everywhere(host) {
			host = "127.0.0.1"
		}
		return "inet:" + net.JoinHostPort(host, port)
	}
	return "unix:" + strings.TrimPrefix(path, queueDirectory)
}

// chrootNote returns a comment about a socket that chrooted services cannot reach, or "".
func (s Settings) chrootNote() string {
	path, ok := strings.CutPrefix(s.Door, "unix:")
	if !ok || strings.HasPrefix(path, queueDirectory) || s.Chroot == "n" {
		return ""
	}
	return "# A chrooted smtpd (\"y\" in the fifth column of master.cf) cannot reach this socket:\n" +
		"# use one below " + queueDirectory + ", or 127.0.0.1.\n"
}

// policyLines returns the lines for check_policy_service.
func (s Settings) policyLines() []Block {
	return []Block{{File: "/etc/postfix/" + mainCF,
		Do: "If smtpd_recipient_restrictions is there already, add check_policy_service to it: after reject_unauth_destination, and " +
			`before whatever permits strangers. Leave smtpd_delay_reject = yes, the default. Then run "postfix reload".`,
		Text: fmt.Sprintf(`# Ask the gate about the sender of mail from strangers. For a trial: without an answer
# in 5 seconds, mail passes. Later leave default_action out: without an answer Postfix
# replies 451, and senders try again.
%ssmtpd_recipient_restrictions =
    permit_mynetworks,
    permit_sasl_authenticated,
    reject_unauth_destination,
    check_policy_service { %s, default_action=DUNNO, timeout=5s }
`, s.chrootNote(), s.postfixDoor())}}
}

// milterLines returns the lines for smtpd_milters.
func (s Settings) milterLines() []Block {
	return []Block{{File: "/etc/postfix/" + mainCF,
		Do: `If smtpd_milters is there already, add the gate to it, before milters that sign mail. Then run "postfix reload".`,
		Text: fmt.Sprintf(`# Ask the gate about the sender and the header of each message. For a trial: without an
# answer, mail passes. Later write default_action=tempfail: Postfix replies 451, and
# senders try again.
%ssmtpd_milters = { %s, default_action=accept }
# The gate may only judge what comes over SMTP. Mail of the sendmail command, and
# bounces, must not be rejected: do not add it to non_smtpd_milters.
`, s.chrootNote(), s.postfixDoor())}}
}

// resolverBlock returns the lines with which a resolver asks the gate for its zones.
func (s Settings) resolverBlock() Block {
	host, port, _ := net.SplitHostPort(s.Door)
	if everywhere(host) || host == "localhost" {
		host = "127.0.0.1"
	}
	var server, stubs, dnsmasq strings.Builder
	for _, zone := range []string{s.Zone, s.HashedZone} {
		if zone != "" {
			fmt.Fprintf(&server, "    domain-insecure: %q\n", zone)
			fmt.Fprintf(&stubs, "stub-zone:\n    name: %q\n    stub-addr: %s@%s\n", zone, host, port)
			fmt.Fprintf(&dnsmasq, " server=/%s/%s#%s", zone, host, port)
		}
	}
	return Block{File: "/etc/unbound/unbound.conf.d/spamgate.conf",
		Do:   `A new file for the resolver of the mail server's machine; then run "unbound-control reload". (For dnsmasq:` + dnsmasq.String() + ")",
		Text: "# The gate answers for its own zones, on this machine and without DNSSEC.\nserver:\n    do-not-query-localhost: no\n" + server.String() + stubs.String()}
}

// dnsLines returns the lines for programs that look up the sender's domain.
func (s Settings) dnsLines() []Block {
	return []Block{
		s.resolverBlock(),
		{File: "/etc/postfix/" + mainCF,
			Do: "For Postfix. If smtpd_recipient_restrictions is there already, add the last two lines to it: after reject_unauth_destination. " +
				`Then run "postfix reload".`,
			Text: fmt.Sprintf(`# Refuse senders whose domain the gate's lists reject; postmaster is reachable (RFC 5321,
# section 4.5.1). A resolver that does not answer lets mail pass. Postfix does not ask for
# addresses: an allow entry for one of a listed domain has no effect here.
smtpd_recipient_restrictions =
    permit_mynetworks,
    permit_sasl_authenticated,
    reject_unauth_destination,
    check_recipient_access inline:{postmaster@=OK},
    reject_rhsbl_sender %s=127.0.0.2
`, s.Zone)},
		{File: "/etc/exim4/exim4.conf.template",
			Do:   `For Exim: in the ACL for RCPT (acl_check_rcpt), after the line that accepts the mail of your own users. Then restart Exim.`,
			Text: s.eximDNSLines()},
	}
}

// eximDNSLines returns a statement for an ACL.
func (s Settings) eximDNSLines() string {
	const hash = "${lc:${sha1:${lc:$sender_address}}}"
	what, allowed, listed := "domain", "", ""
	if s.HashedZone != "" {
		what = "domain or address"
		allowed = fmt.Sprintf("  !dnslists = %s=127.0.1.1/%s\n", s.HashedZone, hash)
		listed = fmt.Sprintf(" : %s=127.0.0.2/%s", s.HashedZone, hash)
	}
	return fmt.Sprintf(`# Refuse senders whose %s the gate's lists reject; postmaster is reachable.
deny
  message = sender refused: $dnslist_text
  !local_parts = postmaster
%s  dnslists = %s=127.0.0.2/$sender_address_domain%s
`, what, allowed, s.Zone, listed)
}

// rspamdLines returns the lines for rspamd's module rbl.
func (s Settings) rspamdLines() []Block {
	return []Block{
		s.resolverBlock(),
		{File: "/etc/rspamd/local.d/rbl.conf",
			Do: `If the file is there already, add the rules to its section rbls. Then run "rspamadm configtest" and "systemctl reload rspamd".`,
			Text: fmt.Sprintf(`# Ask the gate about the domain and the address of the sender, in the envelope and in
# From. It is not asked about the domain of an address that an allow list lets in.
rbls {
  spamgate_allowed {
    rbl = "%[2]s";
    ignore_defaults = true;
    is_whitelist = true;
    hash = "sha1";
    selector = {
      smtp_from = "from('smtp'):addr.lower";
      mime_from = "from('mime'):addr.lower";
    }
    returncodes {
      SPAMGATE_ADDRESS_ALLOWED = "127.0.1.1";
    }
  }
  spamgate_domain {
    rbl = "%[1]s";
    ignore_defaults = true;
    selector = {
      smtp_from = "from('smtp'):addr.lower";
      mime_from = "from('mime'):addr.lower";
    }
    process_script = <<EOD
return function(address, zone, task)
  local found = task:get_symbol('SPAMGATE_ADDRESS_ALLOWED')
  for _, option in ipairs(found and found[1].options or {}) do
    if option:sub(1, #address + 1) == address .. ':' then
      return nil
    end
  end
  local domain = address:match('[^@]+$')
  return domain and domain .. '.' .. zone
end
EOD;
    returncodes {
      SPAMGATE_REJECT = "127.0.0.2";
      SPAMGATE_DEFER = "127.0.0.3";
      SPAMGATE_TAG = "127.0.0.4";
      SPAMGATE_DISCARD = "127.0.0.5";
    }
  }
  spamgate_address {
    rbl = "%[2]s";
    ignore_defaults = true;
    hash = "sha1";
    selector = {
      smtp_from = "from('smtp'):addr.lower";
      mime_from = "from('mime'):addr.lower";
    }
    returncodes {
      SPAMGATE_ADDRESS_REJECT = "127.0.0.2";
      SPAMGATE_ADDRESS_DEFER = "127.0.0.3";
      SPAMGATE_ADDRESS_TAG = "127.0.0.4";
      SPAMGATE_ADDRESS_DISCARD = "127.0.0.5";
    }
  }
}
`, s.Zone, s.HashedZone)},
		{File: "/etc/rspamd/local.d/rbl_group.conf",
			Do: "The scores, which rspamd adds up. With the default actions 15 rejects alone.",
			Text: `symbols = {
  "SPAMGATE_ADDRESS_ALLOWED" { weight = 0.0; one_shot = true; description = "the gate allows the sender's address"; }
  "SPAMGATE_REJECT" { weight = 15.0; one_shot = true; description = "the gate rejects the sender's domain"; }
  "SPAMGATE_DEFER" { weight = 4.0; one_shot = true; }
  "SPAMGATE_TAG" { weight = 4.0; one_shot = true; }
  "SPAMGATE_DISCARD" { weight = 15.0; one_shot = true; }
  "SPAMGATE_ADDRESS_REJECT" { weight = 15.0; one_shot = true; description = "the gate rejects the sender"; }
  "SPAMGATE_ADDRESS_DEFER" { weight = 4.0; one_shot = true; }
  "SPAMGATE_ADDRESS_TAG" { weight = 4.0; one_shot = true; }
  "SPAMGATE_ADDRESS_DISCARD" { weight = 15.0; one_shot = true; }
}
`},
	}
}
