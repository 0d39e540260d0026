package fleet

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/atomicfile"
	"spamgate/internal/term"
)

// Names of the files that init writes.
const (
	fileConfig = "fleet.toml"
	fileToken  = "token"
	fileCA     = "ca.pem"
	fileCert   = "server.pem"
	fileKey    = "server.key"
)

// The ports of the server in the gate.
const (
	clientPort = "4222"
	routePort  = "6222"
)

// machine is one that gets a server.
type machine struct {
	Name string `json:"name"`
	Host string `json:"host"` // address or name
	Dir  string `json:"dir"`  // with its files
}

// maxMachines bounds a cluster: more servers make it slower, and members need no server.
const maxMachines = 9

func newInit() *cobra.Command {
	dir := "fleet"
	cmd := &cobra.Command{
		Use:   "init NAME=HOST...",
		Short: "Write the files for a new fleet, with servers in the gates",
		Long: `Write a directory for each machine, for a fleet whose servers run in the gates
([fleet.server]): a part of the configuration, the token that all share, and
certificates. HOST is the address or the name by which the others reach the
machine. The certificates, and the authority that signs them, are valid for ten
years; the authority's key is not kept.

Three machines go on while one of them is down. Two are not enough for that: the
third may be any machine that runs "spamgate fleet server".

Exit codes: 0 written; 2 an error: nothing is overwritten.`,
		Example: `  spamgate fleet init mx1=192.0.2.1 mx2=192.0.2.2 mx3=192.0.2.3`,
		Args:    cobra.MinimumNArgs(1),
	}
	cmd.Flags().StringVarP(&dir, "dir", "d", dir, "the new `DIR` for the files")
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		machines, err := parseMachines(args, dir)
		if err != nil {
			return err
		}
		if err := writeFleet(dir, machines); err != nil {
			return err
		}
		return printTo(cmd, *asJSON, struct {
			Machines []machine `json:"machines"`
		}{machines}, func(w io.Writer) { printInit(w, dir, machines) })
	}
	return cmd
}

var machineName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func parseMachines(args []string, dir string) (machines []machine, err error) {
	seen := map[string]bool{}
	for _, arg := range args {
		name, host, ok := strings.Cut(arg, "=")
		switch {
		case !ok || host == "":
			return nil, fmt.Errorf("%q: write NAME=HOST, such as mx1=192.0.2.1", arg)
		case !machineName.MatchString(name):
			return nil, fmt.Errorf(`%q: a name has letters, digits, ".", "_" and "-"`, name)
		case net.ParseIP(host) == nil && !machineName.MatchString(host):
			return nil, fmt.Errorf("%q: not an address or the name of a machine; ports are always %s and %s", host, clientPort, routePort)
		case seen["name "+name] || seen["host "+host]:
			return nil, fmt.Errorf("%s: each machine has its own name and host", arg)
		}
		seen["name "+name], seen["host "+host] = true, true
		machines = append(machines, machine{name, host, filepath.Join(dir, name)})
	}
	if len(machines) > maxMachines {
		return nil, fmt.Errorf("%d machines: at most %d have a server; three are enough, and further gates only need [fleet]", len(machines), maxMachines)
	}
	return machines, nil
}

// writeFleet writes the files of all machines into a new directory.
func writeFleet(dir string, machines []machine) (err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, os.ErrExist) {
			err = fmt.Errorf("%w: remove it, or name another with --dir", err)
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir)) // which was made just now
		}
	}()
	authority, err := newAuthority(time.Now())
	if err != nil {
		return err
	}
	token := rand.Text() + rand.Text() + "\n"
	for _, m := range machines {
		cert, key, err := authority.sign(m.Host)
		if err != nil {
			return err
		}
		if err := os.Mkdir(m.Dir, 0o700); err != nil {
			return err
		}
		for name, text := range map[string][]byte{
			fileConfig: []byte(configOf(m, machines)), fileToken: []byte(token), fileCA: authority.pem, fileCert: cert, fileKey: key,
		} {
			if err := os.WriteFile(filepath.Join(m.Dir, name), text, 0o600); err != nil {
				return err
			}
		}
	}
	return atomicfile.SyncDir(dir)
}

// configOf returns the part of the configuration of a machine.
func configOf(m machine, machines []machine) string {
	var servers, routes []string
	for _, other := range machines {
		servers = append(servers, fmt.Sprintf("%q", "tls://"+net.JoinHostPort(other.Host, clientPort)))
		if other != m {
			routes = append(routes, fmt.Sprintf("%q", "tls://"+net.JoinHostPort(other.Host, routePort)))
		}
	}
	lines := []string{
		"# For " + m.Name + ": append this to its configuration. The files are below the directory",
		"# fleet beside that; the gate's user alone may read them.",
		"",
		"[fleet]",
		fmt.Sprintf("name = %q", m.Name),
		"servers = [" + strings.Join(servers, ", ") + "]",
		`credentials = "fleet/` + fileToken + `"`,
		`tls_ca = "fleet/` + fileCA + `"`,
		"",
		"[fleet.server]",
		fmt.Sprintf("listen = %q", net.JoinHostPort(m.Host, clientPort)),
	}
	if len(routes) > 0 {
		lines = append(lines,
			fmt.Sprintf("cluster = %q", net.JoinHostPort(m.Host, routePort)),
			"routes = ["+strings.Join(routes, ", ")+"]")
	}
	lines = append(lines,
		`tls_cert = "fleet/`+fileCert+`"`,
		`tls_key = "fleet/`+fileKey+`"`, "")
	return strings.Join(lines, "\n")
}

func printInit(w io.Writer, dir string, machines []machine) {
	fmt.Fprintf(w, "written: %s\n\nNext, for each machine:\n", dir)
	first := machines[0]
	fmt.Fprintf(w, "  1. copy its directory as fleet/ beside its config.toml, for the gate's user:\n"+
		"     scp -r %s root@%s:/etc/spamgate/fleet\n"+
		"     ssh root@%s chown -R spamgate: /etc/spamgate/fleet\n", term.ShellWord(first.Dir), first.Host, first.Host)
	fmt.Fprintf(w, "  2. append fleet/%s to config.toml, write fleet = true below the\n"+
		"     [[list]]s that are to be shared, and restart the gate\n", fileConfig)
	fmt.Fprintf(w, "  3. let only these machines reach each other's ports %s and %s\n", clientPort, routePort)
	fmt.Fprintln(w, "Then: spamgate fleet status")
	if len(machines) == 2 {
		fmt.Fprintln(w)
		term.PrintWrapped(w, "NOTE: ", "with two servers edits are refused while one is down. A third server on any machine changes that: name it here, and run \"spamgate fleet server\" there.")
	}
	fmt.Fprintln(w)
	term.PrintWrapped(w, "", fmt.Sprintf("Remove the directory %s when it is copied: who has the token can change the lists.", dir))
}
