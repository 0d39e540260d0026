package decisions

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/blocklist/sender"
	"spamgate/internal/cli/local"
	history "spamgate/internal/decisions"
	"spamgate/internal/logging"
	"spamgate/internal/mailwhy"
	"spamgate/internal/words"
)

// wanted are the flags that say which decisions are wanted.
type wanted struct {
	id, address, sender, recipient, domain string
	list, action, client, since            string
}

func (f *wanted) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.sender, "sender", "", "only of this sender `ADDRESS`; \"<>\" is a bounce's")
	cmd.Flags().StringVar(&f.recipient, "recipient", "", "only to this recipient `ADDRESS`")
	cmd.Flags().StringVar(&f.address, "address", "", "only of or to this `ADDRESS`")
	cmd.Flags().StringVar(&f.domain, "domain", "", "only of senders at this `DOMAIN` or one below it")
	cmd.Flags().StringVar(&f.id, "id", "", "only about the message with this `ID` of a refusal")
	f.addCommon(cmd, "")
}

// addCommon adds the flags that the ranking has, too, with the default of --since.
func (f *wanted) addCommon(cmd *cobra.Command, since string) {
	cmd.Flags().StringVarP(&f.list, "list", "l", "", "only because of this list `NAME`")
	cmd.Flags().StringVar(&f.action, "action", "", "only with this `ACTION`, such as reject or tag")
	cmd.Flags().StringVar(&f.client, "client", "", "only of the client with this `IP` address")
	cmd.Flags().StringVar(&f.since, "since", since, "only since `TIME`: 7d, 12h, a day or a time")
}

// query returns what to search for. Notes are about what the history cannot tell.
func (s *session) query(f *wanted) (q history.Query, notes []string, err error) {
	q = history.Query{List: f.list, Action: f.action}
	if q.Since, err = s.parseSince(f.since); err != nil {
		return q, nil, err
	}
	if f.action != "" {
		if _, err := words.ParseAction(f.action); err != nil {
			return q, nil, fmt.Errorf("--action: %w", err)
		}
	}
	if f.id != "" {
		var ok bool
		if q.ID, ok = mailwhy.FindID(f.id); !ok {
			return q, nil, fmt.Errorf("--id %q: an id has 12 letters and digits from 2 to 7, as at the end of a refusal (\"id 2ZFPDJSVUUAR\")", f.id)
		}
	}
	if f.client != "" {
		client, err := netip.ParseAddr(f.client)
		if withPort, noPort := netip.ParseAddrPort(f.client); noPort == nil { // as the output has it
			client, err = withPort.Addr(), nil
		}
		if err != nil {
			return q, nil, fmt.Errorf("--client %s: use an IP address, such as 192.0.2.1 or 2001:db8::1", f.client)
		}
		q.Client = client.Unmap().String()
	}
	if q.Domain, err = s.domain(f.domain); err != nil {
		return q, nil, err
	}
	for _, a := range []struct {
		flag, text string
		field      *string
	}{{"sender", f.sender, &q.Sender}, {"recipient", f.recipient, &q.Recipient}, {"address", f.address, &q.Address}} {
		if a.text == "" {
			continue
		}
		if *a.field, err = local.ShownAddress(s.config, a.text); err != nil {
			return q, nil, fmt.Errorf("--%s %w", a.flag, err)
		}
		if s.config.Log.Addresses == logging.AddressesDomain && *a.field != "<>" {
			notes = append(notes, domainsOnly(a.text))
		}
	}
	return q, notes, nil
}

// domainsOnly says that what was found may be about others at the domain of an address.
func domainsOnly(address string) string {
	return fmt.Sprintf(`The history has domains only ([log] addresses = "domain"), so these may be about others than %s.`, address)
}

// domain returns a domain in normal form.
func (s *session) domain(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if s.config.Log.Addresses == logging.AddressesHash {
		return "", fmt.Errorf("--domain: %w", errHashes)
	}
	d, err := sender.NormalizeDomain(strings.TrimLeft(text, "@."))
	if err != nil {
		return "", fmt.Errorf("--domain %s: %w", text, err)
	}
	return d, nil
}
