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
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/atomicfile"
	"spamgate/internal/config"
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

// The ports of spamgate-fleetd.
const (
	clientPort = "4222"
	routePort  = "6222"
)

// machine is one that gets a server.
type machine struct {
	Name string `json:"name"`
	Host string `json:"host,omitempty"` // address or name
	Dir  string `json:"dir"`            // with its files
}

// maxMachines bounds a cluster: more servers make it slower, and members need no server.
const maxMachines = 9

func newInit() *cobra.Command {
	dir := "fleet"
	cmd := &cobra.Command{
		Use:   "init NAME=HOST...",
		Short: "Write the files for a new fleet, with a server on each machine",
		Long: `Write a directory for each machine, for a fleet with a server of spamgate-fleetd
on each: a part of the configuration, which gate and server read, the token that
all share, and certificates. HOST is the address or the name by which the others
reach the machine. The certificates, and the authority that signs them, are
valid for ten years; the authority's key is not kept.

Three machines go on while one of them is down, and four are not better. Two do
not: the third may be any machine that runs spamgate-fleetd, with a gate or
without.

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

func badName(name string) error {
	return fmt.Errorf(`%q: a name has letters, digits, ".", "_" and "-"`, name)
}

func parseMachines(args []string, dir string) (machines []machine, err error) {
	seen := map[string]bool{}
	for _, arg := range args {
		name, host, ok := strings.Cut(arg, "=")
		switch {
		case !ok || host == "":
			return nil, fmt.Errorf("%q: write NAME=HOST, such as mx1=192.0.2.1", arg)
		case !machineName.MatchString(name):
			return nil, badName(name)
		}
		if err := checkHost(host); err != nil {
			return nil, err
		}
		nameKey, hostKey := "name "+sameFor(name), "host "+sameFor(host)
		if seen[nameKey] || seen[hostKey] {
			return nil, fmt.Errorf("%s: each machine has its own name and host; case and a dot at the end make no difference", arg)
		}
		seen[nameKey], seen[hostKey] = true, true
		machines = append(machines, machine{name, host, filepath.Join(dir, name)})
	}
	if len(machines) > maxMachines {
		return nil, fmt.Errorf("%d machines: at most %d have a server; three are enough, and further gates only need [fleet]", len(machines), maxMachines)
	}
	return machines, nil
}

// checkHost checks an address or a name by which others are to reach a machine.
func checkHost(host string) error {
	ip := net.ParseIP(host)
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	_, notNumber := strconv.ParseUint(labels[len(labels)-1], 10, 64)
	switch {
	case ip != nil && (ip.IsUnspecified() || ip.IsMulticast() || ip.Equal(net.IPv4bcast)):
		return fmt.Errorf("%s: not an address of one machine: write the one by which the others reach it", host)
	case ip == nil && !machineName.MatchString(host):
		return fmt.Errorf("%q: not an address or the name of a machine; ports are always %s and %s", host, clientPort, routePort)
	case ip == nil && notNumber == nil: // RFC 1123, section 2.1
		return fmt.Errorf("%s: not a valid address, and a name does not end with a number: write an address such as 192.0.2.1", host)
	}
	return nil
}

// sameFor returns what is the same for all ways to write a name or an address.
func sameFor(host string) string {
	if ip := net.ParseIP(host); ip != nil {
		return ip.String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// writeFleet writes the files of all machines into a new directory.
func writeFleet(dir string, machines []machine) (err error) {
	if err := makeNew(dir); err != nil {
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
		err = writeFiles(m.Dir, map[string][]byte{
			fileConfig: []byte(configOf(m, machines)), fileToken: []byte(token), fileCA: authority.pem, fileCert: cert, fileKey: key,
		})
		if err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(dir)
}

// makeNew makes a directory that does not exist yet.
func makeNew(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%w: remove it, or name another with --dir", err)
	}
	return err
}

// writeFiles makes a directory with files that only the user may read. After an error nothing is
// left of it.
func writeFiles(dir string, files map[string][]byte) error {
	if err := makeNew(dir); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return errors.Join(err, os.RemoveAll(dir))
		}
	}
	return atomicfile.SyncDir(dir)
}

// configOf returns the part of the configuration of a machine.
func configOf(m machine, machines []machine) string {
	var servers, routes []string
	for _, other := range machines {
		servers = append(servers, "tls://"+net.JoinHostPort(other.Host, clientPort))
		if other != m {
			routes = append(routes, "tls://"+net.JoinHostPort(other.Host, routePort))
		}
	}
	lines := append(fleetTable(m.Name, servers, true, true),
		"",
		"# For spamgate-fleetd, which reads the same file.",
		"[fleet.server]",
		fmt.Sprintf("listen = %q", net.JoinHostPort(m.Host, clientPort)))
	if len(routes) > 0 {
		lines = append(lines,
			fmt.Sprintf("cluster = %q", net.JoinHostPort(m.Host, routePort)),
			"routes = "+arrayOf(routes))
	}
	lines = append(lines,
		`tls_cert = "fleet/`+fileCert+`"`,
		`tls_key = "fleet/`+fileKey+`"`, "")
	return strings.Join(lines, "\n")
}

// fleetTable returns the lines of [fleet].
func fleetTable(name string, servers []string, token, ca bool) []string {
	lines := []string{
		"",
		"# For " + name + ", at the end of its configuration. The files are in the directory fleet",
		"# beside that; the gate's user alone may read them.",
		"[fleet]",
		fmt.Sprintf("name = %q", name),
		"servers = " + arrayOf(servers),
	}
	if token {
		lines = append(lines, `credentials = "fleet/`+fileToken+`"`)
	}
	if ca {
		lines = append(lines, `tls_ca = "fleet/`+fileCA+`"`)
	}
	return lines
}

// arrayOf returns an array of TOML.
func arrayOf(values []string) string {
	var quoted []string
	for _, v := range values {
		quoted = append(quoted, fmt.Sprintf("%q", v))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func printInit(w io.Writer, dir string, machines []machine) {
	fmt.Fprintf(w, "written: %s\n\nCopy each directory to its machine, beside config.toml:\n", dir)
	for _, m := range machines {
		printCopy(w, m.Dir, m.Host)
	}
	printSteps(w)
	fmt.Fprintln(w, "  systemctl enable --now spamgate-fleetd")
	term.PrintWrapped(w, "", fmt.Sprintf("Let these machines alone reach each other's ports %s and %s. Then: spamgate fleet status", clientPort, routePort))
	if lacks := config.FewServers(len(machines)); lacks != "" {
		fmt.Fprintln(w)
		term.PrintWrapped(w, "NOTE: ", lacks+"; "+config.ThirdServer+".")
	} else if n := len(machines); n%2 == 0 {
		fmt.Fprintln(w)
		term.PrintWrapped(w, "NOTE: ", fmt.Sprintf("%d servers go on while %d of them cannot be reached, as %d do: an even number costs more and adds nothing.", n, (n-1)/2, n-1))
	}
	fmt.Fprintln(w)
	term.PrintWrapped(w, "", fmt.Sprintf("Remove the directory %s when it is copied: who has the token can change the lists.", dir))
}

// printCopy prints the command that copies a directory to its machine.
func printCopy(w io.Writer, dir, host string) {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	fmt.Fprintf(w, "  scp -r %s %s\n", term.ShellWord(dir), term.ShellWord("root@"+host+":/etc/spamgate/fleet"))
}

// printSteps prints what is to be done on each machine.
func printSteps(w io.Writer) {
	fmt.Fprint(w, `Then, on each machine as root, in /etc/spamgate:
  chown -R spamgate: fleet
  sed -i '/^managed = true/a fleet = true' config.toml  # shares managed lists
  cat fleet/`+fileConfig+` >> config.toml
  systemctl reload-or-restart spamgate
`)
}
