package setup

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/judge"
	"spamgate/internal/config"
	"spamgate/internal/dnslist"
)

// OpenDNS returns the client of the lists in DNS. It has begun to check them, if there are any.
func OpenDNS(c *config.Config, log *slog.Logger) (*dnslist.Client, error) {
	lists, resolvers, err := dnsLists(c)
	if err != nil {
		return nil, err
	}
	client, err := dnslist.New(dnslist.Config{Lists: lists, Resolvers: resolvers, Log: log})
	if err != nil {
		return nil, fmt.Errorf("lists in DNS: %w", err)
	}
	return client, nil
}

// ApplyDNS makes the client use the lists of another configuration.
func ApplyDNS(client *dnslist.Client, c *config.Config) error {
	lists, resolvers, err := dnsLists(c)
	if err == nil {
		err = client.Apply(lists, resolvers)
	}
	return err
}

// dnsLists returns the lists in DNS, and the servers to ask.
func dnsLists(c *config.Config) (lists []dnslist.List, servers []netip.AddrPort, err error) {
	for _, l := range c.Lists {
		if !l.InDNS() {
			continue
		}
		codes, err := dnslist.ParseCodes(l.DNSCodes)
		if err != nil {
			return nil, nil, fmt.Errorf("list %q: %w", l.Name, err)
		}
		lists = append(lists, dnslist.List{
			Name: l.Name, Zone: l.DNSZone, Codes: codes, Exact: l.Match == "exact",
			Timeout: l.DNSTimeout, Defer: l.DNSOnError == "defer", Test: l.DNSTest,
		})
	}
	servers, err = resolvers(c)
	return lists, servers, err
}

// resolvers returns the DNS servers to ask; none: those of the system.
func resolvers(c *config.Config) (all []netip.AddrPort, err error) {
	for _, s := range c.Resolver.Addr {
		addr, err := netip.ParseAddrPort(s)
		if err != nil {
			return nil, fmt.Errorf("resolver %q: %w", s, err)
		}
		all = append(all, addr)
	}
	return all, nil
}

// Askers returns what [judge.Checker.Asked] needs.
func Askers(client *dnslist.Client) func() judge.Asker {
	return func() judge.Asker { return asker{client.Message()} }
}

// asker is the questions of one message.
type asker struct{ *dnslist.Message }

// Result implements judge.Asker.
func (a asker) Result(ctx context.Context, list, domain string) blocklist.Answer {
	r := a.Message.Result(ctx, list, domain)
	var codes []string
	for _, code := range r.Codes {
		codes = append(codes, code.String())
	}
	return blocklist.Answer{
		Name: r.Name, Reason: r.Reason, Note: strings.Join(codes, " "),
		Unknown: string(r.Cause), Defer: r.Defer,
	}
}
