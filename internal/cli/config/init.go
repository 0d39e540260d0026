package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/mailservers"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// initOptions are the flags of config init, and then the settings of the configuration.
type initOptions struct {
	server                              mailservers.Kind
	hostname, listen, nextHop, stateDir string
	contact, tlsCert, tlsKey, zone      string
	domains                             []string
	submission                          bool

	out                      string
	force, dryRun, json      bool
	check                    bool
	configFile, serverConfig string
	mailLog                  string
}

// systemdSockets is the address for the sockets that systemd passes.
const systemdSockets = "systemd"

// settingFlags are the flags about the configuration. If one is given, nothing is asked.
var settingFlags = []string{"hostname", "domain", "contact", "listen", "next-hop", "tls-cert", "tls-key", "submission", "state-dir", "zone"}

func newInitCommand() *cobra.Command {
	o := &initOptions{}
	cmd := &cobra.Command{
		Use:   "init --for SERVER",
		Short: "Write a configuration for your mail server",
		Long: `Write a configuration of at most 60 lines (80 with --submission), and print the
lines that belong into the mail server's own files. SERVER is the mail server
after the gate: postfix, exim, opensmtpd or lmtp (Dovecot) on this machine,
remote (a server on another machine, over TLS) or maildir (none: the gate
delivers).

Or it is a program that keeps port 25 and asks the gate about each sender:
postfix-policy (check_policy_service), postfix-milter, rspamd or dns (Postfix,
Exim and others that ask blocklists in DNS).

Without --out the configuration goes to standard output, and the rest to
standard error. With --out FILE, lists that are missing beside it are made, and
are empty. An existing FILE is replaced only with --force. The certificate must
be there, since the gate does not start without it.

If no flag about the configuration is given, and standard input is a terminal,
the command asks for what it needs. Otherwise it asks nothing, and names the
flags that are missing.

--check tells whether the lines are in the server's files, and whether other
lines there refuse the gate's mail, or change it after the gate has judged it.
It changes nothing. It reads the output of postconf, exim -bP and -bV, or
doveconf, or smtpd.conf; with --server-config another directory or file, or
standard input ("-").

Exit codes: 0 written, or all lines are there; 1 --check: lines are missing;
2 an error.`,
		Example: `  spamgate config init --for postfix --hostname mx.example.org \
      --domain example.org --out config.toml
  spamgate config init --for postfix --check --config config.toml
  spamgate config init --for postfix-policy --out config.toml
  spamgate config init --for dns --zone bl.example.org --out config.toml
  ssh mx2 '(postconf -x; postconf -M; postconf -xP)' | spamgate config init \
      --for remote --next-hop smtp://mx2.example.org --check --server-config -`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.StringVar((*string)(&o.server), "for", "", "the mail `SERVER`: postfix, exim, opensmtpd, lmtp,\nremote, maildir, postfix-policy, postfix-milter,\nrspamd or dns")
	f.StringVar(&o.hostname, "hostname", "", "the gate's own `NAME`, as in its MX record")
	f.StringSliceVar(&o.domains, "domain", nil, "a `DOMAIN` that you accept mail for; repeat it, or\nuse commas; or \"file:PATH\", one a line there")
	f.StringVar(&o.contact, "contact", "", "`TEXT` for refused senders (default: ask your\npostmaster)")
	f.StringVar(&o.listen, "listen", "", "`ADDR` for clients (default \"systemd\" if\nspamgate.socket is installed, else \":25\"), or for\nthe server that asks")
	f.StringVar(&o.nextHop, "next-hop", "", "`ADDR` of the server, as \"smtp://127.0.0.1:10025\"")
	f.StringVar(&o.zone, "zone", "", "with rspamd and dns: the `ZONE` in which the lists\nare asked")
	f.StringVar(&o.tlsCert, "tls-cert", "", "the certificate's `FILE`, with its chain")
	f.StringVar(&o.tlsKey, "tls-key", "", "its key's `FILE`")
	f.BoolVar(&o.submission, "submission", false, "also let mail programs log in, at 465 and 587\n(postfix and exim)")
	f.StringVar(&o.stateDir, "state-dir", "", "the state `DIR` (default \"/var/lib/spamgate\")")
	f.StringVarP(&o.out, "out", "o", "", "write the configuration to this `FILE`")
	f.BoolVar(&o.force, "force", false, "replace an existing FILE")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "with --out: show what would be written")
	f.BoolVar(&o.check, "check", false, "tell whether the server has its lines")
	f.StringVarP(&o.configFile, "config", "c", "", "with --check: the gate's configuration `FILE`\n(default: as the other flags say)")
	f.StringVar(&o.serverConfig, "server-config", "", "with --check: the server's `FILE`, for Postfix its\ndirectory, \"-\" for standard input")
	f.StringVar(&o.mailLog, "log", "", "the mail server's log `FILE`, to test lists\n(default: looked for)")
	f.BoolVar(&o.json, "json", false, "print JSON, for programs")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.check {
			return o.runCheck(cmd)
		}
		return o.run(cmd)
	}
	values := cobra.FixedCompletions(strings.Split(kindNames(" "), " "), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("for", values); err != nil {
		panic(err) // the flag is there
	}
	cli.NameErrors(cmd)
	return cmd
}

// kindNames returns the names of all kinds of servers.
func kindNames(between string) string {
	names := make([]string, len(mailservers.Kinds))
	for i, k := range mailservers.Kinds {
		names[i] = string(k)
	}
	return strings.Join(names, between)
}

// otherNames are names that users try, and what to do instead.
var otherNames = map[mailservers.Kind]string{
	"dovecot":        "use lmtp",
	"milter":         "did you mean postfix-milter?",
	"policy":         "did you mean postfix-policy?",
	"policy-service": "did you mean postfix-policy?",
	"policy_service": "did you mean postfix-policy?",
	"sendmail":       "Sendmail asks a milter: docs/milter.md has its line, and --for postfix-milter writes the gate's configuration",
}

// checkKind returns an error if --for is not a kind of server.
func (o *initOptions) checkKind() error {
	switch {
	case o.server == "":
		return fmt.Errorf("--for is missing: name the mail server after the gate, or the one that asks it: %s", kindNames(", "))
	case slices.Contains(mailservers.Kinds, o.server):
		return nil
	}
	hint := "use one of " + kindNames(", ")
	if other, ok := otherNames[o.server]; ok {
		hint = other
	} else if near, ok := config.Nearest(string(o.server), strings.Split(kindNames(" "), " ")); ok {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return fmt.Errorf("--for %s: not a known server; %s", o.server, hint)
}

func (o *initOptions) run(cmd *cobra.Command) error {
	for _, name := range []string{"config", "server-config"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s goes with --check; to write a configuration name the file with --out", name)
		}
	}
	questions := o.questions(cmd)
	if questions != nil {
		if err := questions.ask(o); err != nil {
			return err
		}
	}
	if err := o.checkKind(); err != nil {
		return err
	}
	if err := o.complete(); err != nil {
		return err
	}
	c, err := o.parse()
	if err != nil {
		return err
	}
	made, err := o.write(cmd, c)
	if err != nil {
		return err
	}
	if err := o.report(cmd, c, made); err != nil || questions == nil {
		return err
	}
	return questions.offerTest(cmd, o)
}

// complete checks that what is needed is given, and sets the defaults of the rest.
func (o *initOptions) complete() error {
	var missing []string
	need := func(value, flag string) {
		if value == "" {
			missing = append(missing, flag)
		}
	}
	o.setDefaults()
	if o.server.Asks() {
		return o.completeDoor()
	}
	if o.zone != "" {
		return errors.New("--zone goes with rspamd and dns, which ask over DNS")
	}
	need(o.hostname, "--hostname NAME (as in the MX record)")
	if o.server != mailservers.Maildir || o.public() {
		need(strings.Join(o.domains, ""), "--domain DOMAIN (that you accept mail for)")
	}
	need(o.nextHop, "--next-hop smtp://HOST (the server)")
	if o.tlsCert != "" || o.submission {
		need(o.tlsKey, "--tls-key FILE")
	}
	if o.tlsKey != "" || o.submission {
		need(o.tlsCert, "--tls-cert FILE")
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing: %s", strings.Join(missing, ", "))
	}
	if o.server != mailservers.Maildir && !strings.ContainsAny(o.hostname, ".[") {
		return fmt.Errorf("--hostname %s: not a full name; write it with its domain, as in mx.example.org", o.hostname)
	}
	if o.submission && o.server != mailservers.Postfix && o.server != mailservers.Exim {
		return fmt.Errorf("--submission goes with postfix and exim: %s cannot check passwords for the gate's clients; leave mail programs a port of the server's own", o.server.Name())
	}
	return o.checkText()
}

// setDefaults sets what was not given and has a default.
func (o *initOptions) setDefaults() {
	set := func(value *string, to string) {
		if *value == "" {
			*value = to
		}
	}
	if o.server == mailservers.Maildir {
		set(&o.listen, "127.0.0.1:2525")
		set(&o.nextHop, "maildir:mail")
		set(&o.hostname, "localhost")
		if !o.public() {
			set(&o.stateDir, "state")
		}
	}
	if o.server.Asks() {
		set(&o.listen, doors[o.server].addr)
	}
	set(&o.listen, o.defaultListen())
	set(&o.stateDir, "/var/lib/spamgate")
	switch o.server {
	case mailservers.Postfix, mailservers.Exim, mailservers.OpenSMTPD:
		set(&o.nextHop, "smtp://127.0.0.1:10025")
	case mailservers.LMTP:
		set(&o.nextHop, "lmtp+unix:/run/dovecot/lmtp")
	}
	o.domains = slices.DeleteFunc(o.domains, func(d string) bool { return strings.TrimSpace(d) == "" })
	for i := range o.domains {
		o.domains[i] = strings.TrimSpace(o.domains[i])
	}
	if len(o.domains) > 0 && o.domainFile() == "" {
		set(&o.contact, "ask postmaster@"+strings.TrimPrefix(o.domains[0], "."))
	}
	if path, ok := strings.CutPrefix(o.domainFile(), "file:"); ok && path != "" {
		if full, err := filepath.Abs(path); err == nil {
			o.domains[0] = "file:" + full
		}
	}
	for _, file := range []*string{&o.tlsCert, &o.tlsKey} {
		if full, err := filepath.Abs(*file); *file != "" && err == nil {
			*file = full
		}
	}
}

// defaultListen returns the sockets of systemd if their unit is installed.
func (o *initOptions) defaultListen() string {
	for _, dir := range []string{"/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"} {
		if _, err := os.Stat(filepath.Join(dir, "spamgate.socket")); err == nil {
			return systemdSockets
		}
	}
	return ":25"
}

// checkText returns an error about a text that TOML cannot hold, or that is invisible.
func (o *initOptions) checkText() error {
	for _, f := range []struct{ flag, text string }{
		{"hostname", o.hostname}, {"domain", strings.Join(o.domains, "")}, {"contact", o.contact}, {"listen", o.listen}, {"next-hop", o.nextHop},
		{"tls-cert", o.tlsCert}, {"tls-key", o.tlsKey}, {"state-dir", o.stateDir}, {"zone", o.zone},
	} {
		if !utf8.ValidString(f.text) || strings.ContainsFunc(f.text, unicode.IsControl) {
			return fmt.Errorf("--%s %q: has control characters, or is not UTF-8; write it without them", f.flag, f.text)
		}
	}
	return nil
}

// path returns where the configuration is or would be.
func (o *initOptions) path() string {
	if o.out == "" {
		return "config.toml"
	}
	return o.out
}

// maxLines returns the most lines that a configuration has.
func (o *initOptions) maxLines() int {
	if o.submission {
		return 80
	}
	return 60
}

// parse returns the configuration as the gate would read it, without looking at the
// machine.
func (o *initOptions) parse() (*config.Config, error) {
	text := o.configText()
	c, err := config.Parse(o.path(), []byte(text))
	if err != nil {
		return nil, byFlag(err)
	}
	if n := strings.Count(text, "\n"); n > o.maxLines() {
		return nil, fmt.Errorf("--domain: %d domains do not fit into %d lines; write them into a file, one a line, and use --domain file:PATH", len(o.domains), o.maxLines())
	}
	if o.server.Asks() {
		return c, nil
	}
	return c, o.checkNextHop(c.NextHop)
}

// checkNextHop returns an error if the next hop is not of the kind of server.
func (o *initOptions) checkNextHop(n config.NextHop) error {
	addr := n.Addr[0]
	schemes := []string{"smtp://"}
	switch o.server {
	case mailservers.LMTP:
		schemes = []string{"lmtp+unix:", "lmtp://"}
	case mailservers.Remote:
		schemes = []string{"smtp://", "smtps://", "lmtp://"}
	case mailservers.Maildir:
		schemes = []string{"maildir:"}
	}
	if !slices.ContainsFunc(schemes, func(s string) bool { return strings.HasPrefix(addr, s) }) {
		return fmt.Errorf("--next-hop %s: not an address of %s; write one that begins with %s", addr, o.server.Name(), strings.Join(schemes, " or "))
	}
	s := mailservers.Settings{NextHop: addr}
	host, port := s.HostPort()
	switch {
	case host == "" || o.server == mailservers.Remote:
		return nil
	case !s.OnThisMachine():
		return fmt.Errorf("--next-hop %s: not an address of this machine, such as 127.0.0.1; for a server on another machine use --for remote", addr)
	case slices.Contains([]string{":" + port, "0.0.0.0:" + port, host + ":" + port}, o.listen), o.listen == systemdSockets && port == "25":
		return fmt.Errorf("--next-hop %s: the gate itself listens there; give %s another port, such as 10025", addr, o.server.Name())
	}
	return nil
}

// keyFlags are the flags for keys of the configuration.
var keyFlags = []struct{ key, flag string }{
	{"hostname", "hostname"}, {"listen.addr", "listen"}, {"listen.tls_cert", "tls-cert"}, {"listen.tls_key", "tls-key"}, {"listen.tls", "tls-cert"},
	{"listener.addr", "submission"}, {"next_hop", "next-hop"}, {"policy.recipient_domains", "domain"}, {"policy.contact", "contact"}, {"state.dir", "state-dir"},
	{"policy_service.addr", "listen"}, {"milter.addr", "listen"}, {"dns_server.addr", "listen"}, {"dns_server.zone", "zone"}, {"dns_server.hashed_zone", "zone"},
}

// byFlag returns errors about a configuration that begin with the flag in question: the
// user has not seen the file.
func byFlag(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, e := range joined.Unwrap() {
			errs = append(errs, byFlag(e))
		}
		return errors.Join(errs...)
	}
	fault := new(config.Error)
	if !errors.As(err, &fault) {
		return err
	}
	for _, k := range keyFlags {
		if strings.HasPrefix(fault.Key, k.key) {
			return (&config.Error{File: "--" + k.flag, What: fault.What, Hint: fault.Hint})
		}
	}
	return err
}

// machineFaults returns what would make a start fail on this machine, except lists.
func machineFaults(c *config.Config, stderr io.Writer) error {
	found := setup.FindFaults(c)
	found.MissingSockets()
	found.Fleet()
	for _, w := range found.Warnings {
		term.PrintWrapped(stderr, "warning: ", byFlag(w).Error())
	}
	_, unread := setup.ReadRecipients(c)
	return byFlag(errors.Join(config.Join(found.Errors), setup.CheckLoop(c, found.Sockets), unread))
}
