package setup

import (
	"fmt"
	"net"

	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/internal/publish"
	"spamgate/internal/socket"
)

// publish checks the address where lists are fetched, its certificates, and the files of keys.
func (f *faults) publish() {
	p := f.config.Publish
	if p.Addr == "" {
		return
	}
	const key = "publish.addr"
	if tcp, err := net.ResolveTCPAddr("tcp", p.Addr); err != nil {
		f.fail(key, fmt.Sprintf("%q: %v", p.Addr, err), socket.WrongName)
	} else if !f.taken(key, p.Addr, tcp) && !socket.IsLocal(tcp.IP) {
		f.warn(key, fmt.Sprintf("%q is not an address of this machine now; the start fails unless it has it then", p.Addr), socket.ForeignAddress)
	}
	f.certificates(certificateFiles(p.TLSCert, p.TLSKey), map[certs.Files]bool{}, func(key string) string { return "publish." + key })
	if _, err := publish.ReadKey(p.Key); err != nil {
		f.fail("publish.key", err.Error(), "")
	}
	if _, err := publish.ReadTokens(p.Tokens); err != nil {
		f.fail("publish.tokens", err.Error(), "")
	}
}

// Publishing is what the files of [publish] hold.
type Publishing struct {
	Key    publish.Key
	Tokens []string
}

// OpenPublish reads the files of [publish], if lists are published.
func OpenPublish(c *config.Config) (p Publishing, err error) {
	if c.Publish.Addr == "" {
		return p, nil
	}
	if p.Key, err = publish.ReadKey(c.Publish.Key); err != nil {
		return p, fmt.Errorf("[publish] key: %w", err)
	}
	if p.Tokens, err = publish.ReadTokens(c.Publish.Tokens); err != nil {
		return p, fmt.Errorf("[publish] tokens: %w", err)
	}
	return p, nil
}

// console checks the address of the console, and its certificates.
func (f *faults) console() {
	c := f.config.Console
	if c.Addr == "" {
		return
	}
	const key = "console.addr"
	if path, ok := c.Unix(); ok {
		f.doorSocket(key, path)
		socketGroup("console.socket_group", c.SocketGroup, f.fail)
		return
	}
	if tcp, err := net.ResolveTCPAddr("tcp", c.Addr); err != nil {
		f.fail(key, fmt.Sprintf("%q: %v", c.Addr, err), socket.WrongName)
	} else if !f.taken(key, c.Addr, tcp) && !socket.IsLocal(tcp.IP) {
		f.warn(key, fmt.Sprintf("%q is not an address of this machine now; the start fails unless it has it then", c.Addr), socket.ForeignAddress)
	}
	f.certificates(certificateFiles(c.TLSCert, c.TLSKey), map[certs.Files]bool{}, func(key string) string { return "console." + key })
}
