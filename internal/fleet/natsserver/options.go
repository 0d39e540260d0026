package natsserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"spamgate/internal/fleet/credentials"
)

// Bounds of a server. The contents of lists need a few hundred megabytes for ten million entries.
const (
	maxClients = 8192
	maxSubs    = 10_000    // of a client
	maxMemory  = 64 << 20  // of the buckets in memory: signs of life and leases
	maxStore   = 16 << 30  // at most, if there is room
	minStore   = 256 << 20 // at least: a full disk shows later
)

// clusterName is the same in all servers of spamgate.
const clusterName = "spamgate"

// natsOptions returns the options of the NATS server.
func (s *Server) natsOptions() (*server.Options, error) {
	o := &server.Options{
		ServerName: s.o.Name,
		NoSigs:     true, JetStream: true, DisableJetStreamBanner: true,
		StoreDir: s.o.Dir, SyncAlways: true,
		JetStreamMaxMemory: maxMemory, JetStreamMaxStore: room(s.o.Dir),
		MaxConn: maxClients, MaxSubs: maxSubs,
		PingInterval: 20 * time.Second, MaxPingsOut: 2,
	}
	var err error
	if o.Host, o.Port, err = hostPort(s.o.Listen); err != nil {
		return nil, err
	}
	if s.o.Cert != "" {
		o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.certs.Load().GetCertificate(hello)
		}}
	}
	var who credentials.Credentials
	if s.o.Credentials != "" {
		if who, err = credentials.Read(s.o.Credentials); err != nil {
			return nil, fmt.Errorf("credentials of [fleet]: %w", err)
		}
		if err := restrict(o, who); err != nil {
			return nil, err
		}
	}
	if s.o.Cluster != "" {
		err = s.cluster(o, who)
	}
	return o, err
}

// cluster adds the other servers.
func (s *Server) cluster(o *server.Options, who credentials.Credentials) error {
	host, port, err := hostPort(s.o.Cluster)
	if err != nil {
		return err
	}
	o.Cluster = server.ClusterOpts{
		Name: clusterName, Host: host, Port: port,
		NoAdvertise:  true, // members know their servers
		PingInterval: 5 * time.Second, MaxPingsOut: 2,
	}
	if s.o.Credentials != "" {
		o.Cluster.TLSConfig, err = routeTLS(who.RouteKey())
		if err != nil {
			return err
		}
	}
	for _, route := range s.peers {
		u, err := url.Parse(route)
		if err != nil {
			return err
		}
		if u.Scheme == "tls" && s.o.Credentials == "" {
			return fmt.Errorf("route %s wants TLS, whose keys are made of the credentials: set credentials in [fleet]", route)
		}
		o.Routes = append(o.Routes, routeTo(u.Host))
	}
	// JetStream takes the number of routes for that of the servers, when it begins, and a server
	// that counts too few may begin a second cluster. NATS does not use a route to itself.
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	o.Routes = append(o.Routes, routeTo(net.JoinHostPort(host, strconv.Itoa(port))))
	return nil
}

func routeTo(host string) *url.URL { return &url.URL{Scheme: "nats-route", Host: host} }

// servers returns how many servers the cluster is to have.
func (s *Server) servers() int { return 1 + len(s.peers) }

// others returns the routes that do not lead to this server.
func (s *Server) others() (routes []string) {
	host, own, _ := net.SplitHostPort(s.o.Cluster)
	for _, route := range s.o.Routes {
		if u, err := url.Parse(route); err == nil && (u.Port() != own || !same(u.Hostname(), host)) {
			routes = append(routes, route)
		}
	}
	return routes
}

// same reports whether a host is the one on which the server listens, which may be all addresses
// of this machine.
func same(host, listens string) bool {
	if host == listens {
		return true
	}
	own := addresses(listens)
	if ip := net.ParseIP(listens); listens == "" || ip.IsUnspecified() {
		own = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		local, _ := net.InterfaceAddrs()
		for _, addr := range local {
			if n, ok := addr.(*net.IPNet); ok {
				own = append(own, n.IP)
			}
		}
	}
	return slices.ContainsFunc(addresses(host), func(ip net.IP) bool {
		return slices.ContainsFunc(own, ip.Equal)
	})
}

// addresses returns the addresses of a host; none if nobody knows them now.
func addresses(host string) (all []net.IP) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	found, _ := net.DefaultResolver.LookupIPAddr(ctx, host)
	for _, addr := range found {
		all = append(all, addr.IP)
	}
	return all
}

func hostPort(addr string) (string, int, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%q has no valid port", addr)
	}
	if host == "" {
		host = "::" // all addresses
	}
	return strings.Trim(host, "[]"), port, nil
}

// room returns how much a store may hold: three quarters of what is free or already its own.
func room(dir string) int64 {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return maxStore
	}
	free := int64(fs.Bavail) * int64(fs.Bsize)
	return max(minStore, min(maxStore, free/4*3+size(dir)))
}
