package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"spamgate/internal/disposable"
)

// postfixBase configures a Postfix that many clients of one address use: it has no limit
// of connections (it does not query anvil), looks up no names of theirs, and its processes
// stay for the run: their end would be work while others are measured.
const postfixBase = `compatibility_level = 3.6
queue_directory = DIR/queue
data_directory = DIR/data
maillog_file = DIR/mail.log
maillog_file_prefixes = DIR
myhostname = mx.example.org
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
smtpd_peername_lookup = no
mydestination =
alias_maps =
alias_database =
local_recipient_maps =
mynetworks = 127.0.0.0/8
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_client_connection_count_limit = 0
smtpd_client_event_limit_exceptions = 127.0.0.0/8
message_size_limit = 52428800
default_process_limit = 200
max_idle = 1h
`

// postfixMain configures Postfix as a before-queue filter (SMTPD_PROXY_README): it
// looks the sender up in an lmdb table and passes the mail to the sink while the
// client waits, without a queue. Clients may make as many errors as they like.
const postfixMain = postfixBase + `smtpd_sender_restrictions = check_sender_access lmdb:DIR/senders
smtpd_proxy_filter = SINK
smtpd_error_sleep_time = 0
smtpd_soft_error_limit = 100000
smtpd_hard_error_limit = 1000000
smtpd_client_connection_rate_limit = 0
`

const postfixMaster = `ADDR:PORT inet n - n - 200 smtpd
cleanup  unix n - n - 0 cleanup
rewrite  unix - - n - - trivial-rewrite
proxymap unix - - n - - proxymap
anvil    unix - - n - 1 anvil
postlog  unix-dgram n - n - 1 postlogd
`

// hopMain configures the Postfix behind the gates: with its defaults it takes a message
// into its queue, and syncs it, before it replies. Then it discards it.
const hopMain = postfixBase + `smtpd_authorized_xforward_hosts = 127.0.0.0/8
default_transport = discard
`

const hopMaster = postfixMaster + `qmgr unix n - n 300 1 qmgr
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
`

// startPostfix starts a Postfix with the list.
func (s *servers) startPostfix(ctx context.Context, t tools, addr, sink string) error {
	conf, err := s.configurePostfix(addr, sink, postfixMain, postfixMaster)
	if err != nil {
		return err
	}
	if err := makeTable(ctx, t, conf, filepath.Join(filepath.Dir(conf), "senders")); err != nil {
		return err
	}
	return s.start(ctx, target{name: postfix, addr: addr, halt: stopPostfix(t, conf)}, nil, t["postfix"], "-c", conf, "start-fg")
}

// startHop starts the Postfix behind the gates.
func (s *servers) startHop(ctx context.Context, t tools, addr string) error {
	conf, err := s.configurePostfix(addr, "", hopMain, hopMaster)
	if err != nil {
		return err
	}
	s.hopLog = filepath.Join(filepath.Dir(conf), "mail.log")
	s.targets = append(s.targets, target{name: behind(direct), addr: addr})
	home, err := s.makeDir("postfix hop")
	if err != nil {
		return err
	}
	hop, err := startProcess(home, "the Postfix behind the gates", t["postfix"], "-c", conf, "start-fg")
	if err != nil {
		return err
	}
	s.cleanup = append(s.cleanup, hop.stop, stopPostfix(t, conf)) // the last one first
	return hop.waitReady(ctx, addr)
}

func stopPostfix(t tools, conf string) func() {
	return func() { exec.Command(t["postfix"], "-c", conf, "stop").Run() }
}

// configurePostfix makes the directories of a Postfix, and returns that of its
// configuration. Since it drops root's rights, its files are outside of the run's
// directory.
func (s *servers) configurePostfix(addr, sink, main, master string) (conf string, err error) {
	owner, err := user.Lookup("postfix")
	if err != nil {
		return "", err
	}
	dir, err := postfixDir(owner)
	if err != nil {
		return "", err
	}
	s.cleanup = append(s.cleanup, func() { os.RemoveAll(dir) })
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	fill := strings.NewReplacer("DIR", dir, "ADDR", host, "PORT", port, "SINK", sink)
	conf = filepath.Join(dir, "conf")
	for name, text := range map[string]string{"main.cf": main, "master.cf": master} {
		if err := os.WriteFile(filepath.Join(conf, name), []byte(fill.Replace(text)), 0o644); err != nil {
			return "", err
		}
	}
	return conf, nil
}

// lmdbPackage is the Debian package of Postfix's lmdb tables.
const lmdbPackage = "postfix-lmdb"

// makeTable makes Postfix's table of the list, which rejects each domain and its
// subdomains.
func makeTable(ctx context.Context, t tools, conf, table string) error {
	var b strings.Builder
	for line := range strings.Lines(string(disposable.Text())) {
		if d := strings.TrimSpace(line); d != "" && d[0] != '#' {
			fmt.Fprintf(&b, "%s REJECT\n.%s REJECT\n", d, d)
		}
	}
	if err := os.WriteFile(table, []byte(b.String()), 0o644); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, t["postmap"], "-c", conf, "lmdb:"+table).CombinedOutput(); err != nil {
		return fmt.Errorf("postmap: %w: %s (Debian has lmdb tables in the package %s)", err, out, lmdbPackage)
	}
	return nil
}

// postfixDir makes the directories that Postfix needs.
func postfixDir(owner *user.User) (string, error) {
	dir, err := os.MkdirTemp("", "spamgate-bench-postfix-")
	if err != nil {
		return "", err
	}
	uid, err := strconv.Atoi(owner.Uid)
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"queue", "data", "conf"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			return "", err
		}
	}
	return dir, os.Chown(filepath.Join(dir, "data"), uid, -1)
}
