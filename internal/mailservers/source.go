package mailservers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// maxSource is far beyond any server's configuration.
const maxSource = 16 << 20

// Read returns the text of a server's configuration for Check, and where it is from.
// Path is the server's own file, for Postfix the directory of main.cf, "-" for standard
// input, or "" for what the server on this machine uses.
func Read(ctx context.Context, k Kind, path string, stdin io.Reader) (text, from string, err error) {
	if path == "-" {
		text, err = readAll(stdin)
		return text, "standard input", err
	}
	switch k {
	case Postfix, Remote, PostfixPolicy, PostfixMilter:
		return readPostfix(ctx, k, path)
	case Exim:
		return readExim(ctx, path)
	case OpenSMTPD:
		return readOpenSMTPD(path)
	case LMTP:
		return readDovecot(ctx, path)
	}
	return "", "", fmt.Errorf("%s has no configuration", k.Name())
}

func readAll(from io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxSource+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxSource:
		return "", fmt.Errorf("the configuration has more than %d bytes: is it the right file?", maxSource)
	}
	return string(text), nil
}

func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return readAll(f)
}

// FindProgram returns the path of a program of a mail server. These are in directories
// that are not in the PATH of every user.
func FindProgram(names ...string) (string, error) {
	for _, name := range names {
		for _, file := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name, "/usr/local/bin/" + name} {
			if path, err := exec.LookPath(file); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("there is no %s on this machine", names[0])
}

// output runs a program and returns what it prints.
func output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if err := cmd.Run(); err != nil {
		text := strings.Join(strings.Fields(errs.String()), " ")
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, text)
	}
	return out.String(), nil
}

// postconfs are the calls of postconf that parsePostfix wants: the parameters, the
// services, and the parameters of services, with "$name" expanded.
var postconfs = [][]string{{"-x"}, {"-M"}, {"-xP"}}

func readPostfix(ctx context.Context, k Kind, dir string) (text, from string, err error) {
	if k == Remote && dir == "" {
		return "", "", errors.New("the server is on another machine: pipe its configuration, as in ssh HOST '(postconf -x; postconf -M; postconf -xP)' | spamgate config init --for remote --next-hop ADDR --check --server-config -")
	}
	program, err := FindProgram("postconf")
	if err != nil {
		return "", "", fmt.Errorf("%w: is Postfix installed? If it is on another machine or in a container, pipe (postconf -x; postconf -M; postconf -xP) from there, with --server-config -", err)
	}
	if info, err := os.Stat(dir); err == nil && info.Mode().IsRegular() {
		dir = filepath.Dir(dir) // main.cf was named
	}
	var all strings.Builder
	for _, args := range postconfs {
		if dir != "" {
			args = append([]string{"-c", dir}, args...)
		}
		out, err := output(ctx, program, args...)
		if err != nil {
			return "", "", err
		}
		all.WriteString(out)
	}
	if dir == "" {
		return all.String(), "postconf", nil
	}
	return all.String(), dir, nil
}

// PostfixChroot returns what the services of the machine's Postfix have in the column
// chroot of master.cf, or "" if that is not known.
func PostfixChroot(ctx context.Context) string {
	program, err := FindProgram("postconf")
	if err != nil {
		return ""
	}
	text, err := output(ctx, program, "-F", "cleanup/unix/chroot")
	if _, value, found := strings.Cut(strings.TrimSpace(text), " = "); err == nil && found && (value == "y" || value == "n") {
		return value
	}
	return ""
}

func readExim(ctx context.Context, file string) (text, from string, err error) {
	program, err := FindProgram("exim4", "exim")
	switch {
	case err != nil && file == "":
		return "", "", fmt.Errorf("%w: is Exim installed? If it is in a container, pipe (exim -bP; exim -bV) from there, with --server-config -", err)
	case err != nil:
		text, err = readFile(file)
		return text, file, err
	}
	from, args := filepath.Base(program)+" -bP", []string{}
	if file != "" {
		if file, err = filepath.Abs(file); err != nil { // Exim accepts no other
			return "", "", err
		}
		from, args = file, []string{"-C", file}
	}
	text, err = output(ctx, program, append(args, "-bP")...)
	if err != nil && strings.Contains(err.Error(), "hosts_proxy") {
		err = fmt.Errorf("%w: if exim -bV names no PROXY after \"Support for\", install an Exim with PROXY support (Debian: exim4-daemon-heavy)", err)
	}
	if err != nil {
		return "", "", err
	}
	version, err := output(ctx, program, append(args, "-bV")...)
	return text + version, from, err
}

// smtpdConfs are the places of OpenSMTPD's configuration: OpenBSD and Debian, Alpine and
// Fedora, FreeBSD.
var smtpdConfs = []string{"/etc/smtpd.conf", "/etc/mail/smtpd.conf", "/etc/smtpd/smtpd.conf", "/etc/opensmtpd/smtpd.conf", "/usr/local/etc/mail/smtpd.conf"}

func readOpenSMTPD(file string) (text, from string, err error) {
	if file != "" {
		text, err = readFile(file)
		return text, file, err
	}
	for _, file := range smtpdConfs {
		if text, err = readFile(file); !errors.Is(err, fs.ErrNotExist) {
			return text, file, err
		}
	}
	return "", "", fmt.Errorf("there is no %s: is OpenSMTPD installed? Name its file with --server-config", smtpdConfs[0])
}

func readDovecot(ctx context.Context, file string) (text, from string, err error) {
	program, err := FindProgram("doveconf")
	switch {
	case err != nil && file == "":
		return "", "", fmt.Errorf("%w: is Dovecot installed? If it is in a container, pipe doveconf from there, with --server-config -", err)
	case err != nil:
		text, err = readFile(file)
		return text, file, err
	case file == "":
		text, err = output(ctx, program)
		return text, "doveconf", err
	}
	text, err = output(ctx, program, "-c", file)
	return text, file, err
}

// Installed reports whether the server of a kind is on this machine. A server that needs
// not be here counts as installed.
func Installed(k Kind) bool {
	var err error
	switch k {
	case Postfix, PostfixPolicy, PostfixMilter:
		_, err = FindProgram("postconf")
	case Rspamd:
		_, err = FindProgram("rspamd")
	case Exim:
		_, err = FindProgram("exim4", "exim")
	case OpenSMTPD:
		_, err = FindProgram("smtpctl")
	case LMTP:
		_, err = FindProgram("doveconf")
	}
	return err == nil
}

// mailLogs are the usual places of mail servers' logs: Debian, Red Hat and BSD, SUSE,
// and Exim's own.
var mailLogs = []string{"/var/log/mail.log", "/var/log/maillog", "/var/log/mail", "/var/log/mail/mail.log", "/var/log/mail/info"}

var eximLogs = []string{"/var/log/exim4/mainlog", "/var/log/exim/main.log", "/var/log/exim/mainlog", "/var/spool/exim/log/mainlog"}

// MailLog returns the log of the machine's mail server, below root ("" is the machine's
// own). It must be a file with content.
func MailLog(root string, k Kind) string {
	logs := mailLogs
	if k == Exim {
		logs = append(append([]string{}, eximLogs...), mailLogs...)
	}
	for _, name := range logs {
		if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			return filepath.Join(root, name)
		}
	}
	return ""
}
