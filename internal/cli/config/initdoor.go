package config

import (
	"errors"
	"fmt"
	"strings"

	"spamgate/internal/config"
	"spamgate/internal/mailservers"
)

// doors are the doors that servers ask: the table, for what it is, its name, and its address.
var doors = map[mailservers.Kind]struct{ table, asks, name, addr string }{
	mailservers.PostfixPolicy: {config.TablePolicyService, "Postfix's check_policy_service", "postfix", "127.0.0.1:10040"},
	mailservers.PostfixMilter: {config.TableMilter, "Postfix's smtpd_milters", "postfix", "127.0.0.1:10041"},
	mailservers.Rspamd:        {config.TableDNSServer, "rspamd, over DNS", "dns", "127.0.0.1:10053"},
	mailservers.DNS:           {config.TableDNSServer, "mail servers that ask over DNS", "dns", "127.0.0.1:10053"},
}

// completeDoor is complete for a server that asks the gate.
func (o *initOptions) completeDoor() error {
	for _, f := range []struct{ flag, value, why string }{
		{"domain", strings.Join(o.domains, ""), "the mail server itself knows which recipients it accepts"},
		{"next-hop", o.nextHop, "no mail passes through the gate"},
		{"tls-cert", o.tlsCert, "no mail passes through the gate"},
		{"tls-key", o.tlsKey, "no mail passes through the gate"},
	} {
		if f.value != "" {
			return fmt.Errorf("--%s does not go with --for %s: %s; leave it out", f.flag, o.server, f.why)
		}
	}
	if o.submission {
		return fmt.Errorf("--submission does not go with --for %s: no mail passes through the gate; leave it out", o.server)
	}
	if o.server.AsksDNS() && o.zone == "" {
		return errors.New("missing: --zone ZONE (a name of your own for the lists, such as bl.example.org)")
	}
	if o.zone != "" && !o.server.AsksDNS() {
		return errors.New("--zone goes with rspamd and dns, which ask over DNS")
	}
	return o.checkText()
}

// hashedZone returns the zone for the hashes of addresses, which rspamd asks for.
func (o *initOptions) hashedZone() string {
	if !o.server.AsksDNS() {
		return ""
	}
	return "hash-" + o.zone
}

// doorText returns a configuration whose gate is asked.
func (o *initOptions) doorText() string {
	d := doors[o.server]
	var b strings.Builder
	fmt.Fprintf(&b, `# spamgate for %s, written by "config init --for %s".
# All keys: spamgate.toml(5). After a change: spamgate config check --config FILE
`, d.asks, o.server)
	if o.hostname != "" {
		fmt.Fprintf(&b, "\n# The gate's own name.\nhostname = %q\n", o.hostname)
	}
	b.WriteString("\n# No mail passes through the gate.\n[listen]\naddr = []\n")
	fmt.Fprintf(&b, "\n[[%s]]\nname = %q\naddr = %q\n", d.table, d.name, o.listen)
	if o.server == mailservers.PostfixMilter {
		b.WriteString("# The mail of your own users, who have logged in, is not checked.\nexempt_authenticated = true\n")
	}
	if o.zone != "" {
		fmt.Fprintf(&b, "# The lists' domains: example.com is asked as example.com.%s.\nzone = %q\n", o.zone, o.zone)
	}
	if hashed := o.hashedZone(); hashed != "" {
		fmt.Fprintf(&b, "# The hashes of the lists' addresses.\nhashed_zone = %q\n", hashed)
	}
	if o.server.AsksDNS() {
		b.WriteString("# Who may ask: this machine. Add the networks of other mail servers.\nallow_clients = [\"127.0.0.0/8\", \"::1\"]\n")
	}
	if o.contact != "" {
		fmt.Fprintf(&b, "\n[policy]\n# What a refused sender can do.\ncontact = %q\n", o.contact)
	}
	return b.String()
}

// doorSettings adds what a server that asks needs to know of a configuration.
func doorSettings(c *config.Config, k mailservers.Kind, s *mailservers.Settings) error {
	if !k.Asks() {
		return nil
	}
	for _, d := range c.Doors {
		if d.Table != doors[k].table || s.Door != "" {
			continue
		}
		s.Door, s.Zone, s.HashedZone = d.Addr, d.Zone, d.HashedZone
	}
	if s.Door == "" {
		return fmt.Errorf("%s has no [[%s]], which --for %s asks; add one, or name the configuration of another gate", c.File, doors[k].table, k)
	}
	return nil
}
