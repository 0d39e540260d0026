package gate

import (
	"slices"

	"spamgate/internal/certs"
	"spamgate/internal/check"
	"spamgate/internal/config"
	"spamgate/internal/console"
	"spamgate/internal/recipients"
	"spamgate/internal/setup"
	"spamgate/internal/socket"
	"spamgate/internal/web"
)

// newConsole makes the pages for a socket.
func (g *gate) newConsole(c *config.Config, open *socket.OpenDoor) (web.Pages, error) {
	_, unix := c.Console.Unix()
	return console.New(console.Options{
		Config: func() *config.Config { return g.answers.now.Load().config },
		Settings: func() console.Settings {
			now := g.answers.now.Load().config.Console
			return console.Settings{URL: now.Base(open.Addr()), SSOHeader: now.SSOHeader}
		},
		Set:      g.store.Set,
		Gate:     g.answers,
		Fleet:    g.answers,
		Accounts: g.accounts,
		Editor:   g.editor,
		Check: check.New(check.Options{
			Config:     func() *config.Config { return g.answers.now.Load().config },
			Set:        g.store.Set,
			Recipients: func() ([]*recipients.File, error) { return g.answers.now.Load().recipients, nil },
			DNS:        g.dns,
			Proofs:     g.proofs,
		}),
		History:  g.history.reader,
		Recorder: g.history.recorder.Load,
		Show:     g.show,
		Logger:   g.log,
		Unix:     unix,
	})
}

// consoleCertificates opens the certificates of the console. It returns the present ones if the
// files are the same, and nil without TLS.
func (g *gate) consoleCertificates(c *config.Config) (*certs.Reloader, error) {
	now, was := c.Console, g.config.Console
	switch {
	case now.Addr == "" || len(now.TLSCert) == 0:
		return nil, nil
	case g.consoleCerts != nil && slices.Equal(now.TLSCert, was.TLSCert) && slices.Equal(now.TLSKey, was.TLSKey):
		return g.consoleCerts, nil
	}
	return setup.OpenCertificateFiles("[console]", now.TLSCert, now.TLSKey, g.log)
}

// changeCertificates installs certificates of the console or of published lists, and closes the
// present ones if they are others.
func (g *gate) changeCertificates(in **certs.Reloader, now *certs.Reloader) {
	old := *in
	*in = now
	if err := closeOther(old, now); err != nil {
		g.log.Warn("closing the old certificates", "error", err)
	}
}

// closeOther closes certificates, unless they are nil or in use.
func closeOther(r, inUse *certs.Reloader) error {
	if r == nil || r == inUse {
		return nil
	}
	return r.Close()
}

// announceConsole logs where the console is, and why nobody could log in.
func (g *gate) announceConsole() {
	addr := g.adminServers().web[consoleServer].Open.Addr()
	g.log.Info("console", "url", g.config.Console.Base(addr).String(), "addr", addr)
	switch n, err := g.accounts.Check(); {
	case err != nil:
		g.log.Warn("nobody can log in to the console", "error", err)
	case n == 0:
		g.log.Warn("nobody can log in to the console yet: run spamgate console user add NAME --role admin")
	}
}

// ownConsole makes this process the owner of the console's unix socket, with the mode that is
// configured.
func (g *gate) ownConsole() {
	s := g.adminServers().web[consoleServer]
	if s == nil {
		return
	}
	if !s.Open.InPlace() {
		g.log.Warn("the file of the console's socket is gone, so that nobody can reach it: SIGUSR2 or a restart makes it again", "addr", s.Open.Addr())
		return
	}
	if err := s.Open.Own(g.config.Console.Mode()); err != nil {
		g.log.Warn("the console's socket keeps its mode", "addr", s.Open.Addr(), "error", err)
	}
}
