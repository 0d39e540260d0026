package setup

import (
	"fmt"
	"log/slog"
	"net"
	"slices"

	"spamgate/blocklist/judge"
	"spamgate/internal/config"
	"spamgate/internal/proof"
)

// OpenProofs returns what proves senders for allow lists with proven_by. It asks nothing
// before a message needs it.
func OpenProofs(c *config.Config, log *slog.Logger) (*proof.Proofs, error) {
	resolvers, err := resolvers(c)
	if err != nil {
		return nil, err
	}
	return proof.New(proof.Config{Resolvers: resolvers, Log: log}), nil
}

// ApplyProofs makes the proofs use the DNS servers of another configuration.
func ApplyProofs(p *proof.Proofs, c *config.Config) error {
	resolvers, err := resolvers(c)
	if err == nil {
		p.Apply(resolvers)
	}
	return err
}

// Provers returns what [judge.Checker.Prover] needs.
func Provers(p *proof.Proofs) func() judge.Prover {
	return func() judge.Prover { return p.Message() }
}

// proofs warns about listeners at which SPF cannot prove a sender: all their clients are on
// this machine, and none may say for whom it speaks.
func (f *faults) proofs() {
	for _, l := range f.config.Listeners {
		if len(l.ProxySources) > 0 || len(l.TrustedProxies) > 0 || !onlyLocal(l.Addr) {
			continue
		}
		for i, list := range f.config.Lists {
			here := len(l.Lists) == 0 || slices.Contains(l.Lists, list.Name)
			if here && slices.Contains(list.ProvenBy, "spf") {
				f.warn(f.config.ListKey(i, "proven_by"), fmt.Sprintf("SPF proves no sender at the listener %s: its clients are on this machine, and none names the server that sends", l.Name),
					"let the proxy before the gate send PROXY or XCLIENT (proxy_protocol, trusted_proxies), or prove by DKIM")
			}
		}
	}
}

// onlyLocal reports whether only this machine reaches the addresses of a listener.
func onlyLocal(addrs []string) bool {
	return !slices.ContainsFunc(addrs, func(addr string) bool {
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		return err != nil || !tcp.IP.IsLoopback()
	})
}
