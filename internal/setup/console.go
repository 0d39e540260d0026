package setup

import (
	"fmt"

	"spamgate/internal/certs"
	"spamgate/internal/config"
	"spamgate/internal/publish"
)

// publish checks the address where lists are fetched, its certificates, and the files of keys.
func (f *faults) publish() {
	p := f.config.Publish
	if p.Addr == "" {
		return
	}
	f.webAddress("publish.addr", p.Addr)
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
	f.webAddress(key, c.Addr)
	f.certificates(certificateFiles(c.TLSCert, c.TLSKey), map[certs.Files]bool{}, func(key string) string { return "console." + key })
}
