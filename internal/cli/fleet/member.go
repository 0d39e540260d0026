package fleet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/cli/local"
	"spamgate/internal/config"
	"spamgate/internal/fleet/credentials"
)

func newMember() *cobra.Command {
	var dir string
	var readOnly bool
	cmd := &cobra.Command{
		Use:   "member NAME",
		Short: "Write the files for one more gate",
		Long: `Write a directory for one more gate of this fleet, without a server beside it:
a part of the configuration, the credentials, and the authorities to trust. It
is made of this gate's configuration and files.

With --read-only the gate takes the lists, and refuses edits. Its credentials
are made of the others, and count at servers of spamgate-fleetd. At a
NATS server of your own, that server's configuration says who may do what
(docs/fleet.md).

A name that a running member has is refused, if the running gate knows it.

Exit codes: 0 written; 2 an error: nothing is overwritten.`,
		Example: `  spamgate fleet member mx4
  spamgate fleet member dmz1 --read-only --dir new/dmz1`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVarP(&dir, "dir", "d", "", "the new `DIR` for the files (default: NAME)")
	cmd.Flags().BoolVar(&readOnly, "read-only", false, "write credentials that only permit reading")
	file, asJSON := cli.ConfigFlag(cmd), jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := config.Load(*file)
		if err != nil {
			return err
		}
		name := args[0]
		if dir == "" {
			dir = name
		}
		files, err := memberFiles(&c.Fleet, name, readOnly)
		if err == nil {
			err = notTaken(cmd, c, name)
		}
		if err != nil {
			return err
		}
		if err := writeFiles(dir, files); err != nil {
			return err
		}
		return printTo(cmd, *asJSON, machine{Name: name, Dir: dir}, func(w io.Writer) {
			fmt.Fprintf(w, "written: %s\n\nCopy it to the machine, beside config.toml:\n", dir)
			printCopy(w, dir, name)
			printSteps(w)
		})
	}
	return cmd
}

// notTaken returns an error if the running gate knows a member with the name. Without a gate, or a
// fleet that answers, nobody knows.
func notTaken(cmd *cobra.Command, c *config.Config, name string) error {
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	gate := local.DialGate(c)
	defer gate.Close()
	if gate.Client == nil {
		return nil
	}
	f, err := admin.Call(ctx, gate.Client, admin.OpFleet, admin.None{})
	if err != nil {
		return nil
	}
	for _, p := range f.Members {
		if sameFor(p.Name) == sameFor(name) {
			return fmt.Errorf("%s is a member of the fleet that runs now, and each gate has a name of its own; to replace that machine, stop its gate, and give the new machine its /etc/spamgate", p.Name)
		}
	}
	return nil
}

// memberFiles returns the files for one more gate, made of those of this one.
func memberFiles(f *config.Fleet, name string, readOnly bool) (map[string][]byte, error) {
	switch {
	case !f.On():
		return nil, admin.ErrNoFleet
	case !machineName.MatchString(name):
		return nil, badName(name)
	case name == f.Name:
		return nil, fmt.Errorf("%s is this gate: each gate has a name of its own", name)
	case readOnly && f.Credentials == "":
		return nil, errors.New("[fleet] credentials is empty: every gate may change the lists")
	}
	files := map[string][]byte{}
	if f.Credentials != "" {
		text, err := credentialsOf(f.Credentials, name, readOnly)
		if err != nil {
			return nil, err
		}
		files[fileToken] = text
	}
	if f.TLSCA != "" {
		text, err := os.ReadFile(f.TLSCA)
		if err != nil {
			return nil, err
		}
		files[fileCA] = text
	}
	lines := fleetTable(name, f.Servers, files[fileToken] != nil, files[fileCA] != nil)
	if f.TLSCert != "" {
		lines = append(lines, "# The servers may want a certificate of this gate: tls_cert and tls_key.")
	}
	files[fileConfig] = []byte(strings.Join(append(lines, ""), "\n"))
	return files, nil
}

// credentialsOf returns the credentials in a file, or the read-only ones of a name made of them.
func credentialsOf(path, name string, readOnly bool) ([]byte, error) {
	c, err := credentials.Read(path)
	if err != nil {
		return nil, err
	}
	if !readOnly {
		return os.ReadFile(path)
	}
	if c, err = c.ReadOnly(name); err != nil {
		return nil, err
	}
	return []byte(c.Token + c.Seed + "\n"), nil
}
