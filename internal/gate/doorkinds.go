package gate

import (
	"context"
	"net"

	"spamgate/internal/config"
	"spamgate/internal/door"
	"spamgate/internal/milter"
	"spamgate/internal/policyservice"
	"spamgate/internal/rhsbl"
	"spamgate/internal/setup"
)

// protocolOf returns the name of a door's kind in the log.
func protocolOf(d config.Door) string {
	if d.Table == config.TableDNSServer {
		return "dns"
	}
	return d.Table
}

// newDoorServer makes the server of a door.
func (g *gate) newDoorServer(c *config.Config, d config.Door) (doorServer, error) {
	g.metrics.addDoor(d)
	if d.Table == config.TableDNSServer {
		s, err := rhsbl.New(rhsbl.Config{Name: d.Name, Log: g.log, Meter: g.metrics, Store: g.store}, dnsSettings(c, d))
		if err != nil {
			return nil, err
		}
		g.metrics.dns.add(d.Name, s)
		return dnsServer{s}, nil
	}
	settings, err := g.doorSettings(c, d)
	if err != nil {
		return nil, err
	}
	cfg := door.Config{Protocol: protocolOf(d), Name: d.Name, Log: g.log, ShowAddress: g.show, History: g.history, Meter: g.metrics}
	if d.Table == config.TableMilter {
		return mailDoor{milter.New(cfg, settings), g}, nil
	}
	return mailDoor{policyservice.New(cfg, settings), g}, nil
}

// doorSettings returns what a reload may change of a policy service or milter.
func (g *gate) doorSettings(c *config.Config, d config.Door) (door.Settings, error) {
	s := door.Settings{
		Checker:        g.checker(c, d.Lists),
		Policy:         setup.DoorPolicy(c, d),
		Signatures:     g.proofs,
		MaxConnections: doorConnections(c, d),
	}
	setup.SetRules(&s.Policy, g.recipients)
	return s, s.Policy.Validate()
}

func doorConnections(c *config.Config, d config.Door) int {
	return d.MaxConnections.Number(setup.AutoConnections(c, setup.DescriptorLimit()))
}

// mailDoor is the doorServer of a [[policy_service]] or [[milter]].
type mailDoor struct {
	mailServer
	gate *gate
}

type mailServer interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
	Apply(door.Settings)
}

func (m mailDoor) apply(c *config.Config, d config.Door) error {
	settings, err := m.gate.doorSettings(c, d)
	if err == nil {
		m.Apply(settings)
	}
	return err
}

// dnsServer is the doorServer of a [[dns_server]].
type dnsServer struct{ *rhsbl.Server }

func (s dnsServer) apply(c *config.Config, d config.Door) error { return s.Apply(dnsSettings(c, d)) }

// dnsSettings returns what a reload may change of a DNS server.
func dnsSettings(c *config.Config, d config.Door) rhsbl.Settings {
	return rhsbl.Settings{
		Zone:                    d.Zone,
		HashedZone:              d.HashedZone,
		Hostname:                c.Hostname,
		Contact:                 c.Policy.Contact,
		Lists:                   d.Lists,
		TTL:                     d.TTL,
		AllowClients:            d.AllowClients,
		NetworkAnswersPerSecond: int(d.NetworkAnswersPerSecond),
		MaxConnections:          doorConnections(c, d),
	}
}
