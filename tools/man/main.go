// Command man writes the manual pages and the completions of spamgate and hashlab, for packages:
//
//	tools/man/run DIR
//
// DIR gets man1/spamgate*.1 and man1/hashlab*.1 with a page for each command, and one for
// spamgate-fleetd, man5/spamgate.toml.5, and completions/ with spamgate.bash, _spamgate (zsh),
// spamgate.fish and those of hashlab. The same source and SOURCE_DATE_EPOCH give the same bytes. It is a module of its own, so that
// those who build spamgate do not need the libraries that write manual pages.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"spamgate/internal/cli/fleetd"
	"spamgate/internal/cli/lab"
	"spamgate/internal/cli/root"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tools/man:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: tools/man/run DIR")
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("reading SOURCE_DATE_EPOCH, the date of the pages in seconds since 1970: %w; tools/man/run sets it", err)
	}
	date := time.Unix(seconds, 0).UTC()
	if err := os.MkdirAll(filepath.Join(args[0], "man5"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(args[0], "man5", "spamgate.toml.5"), configPage(date), 0o644); err != nil {
		return err
	}
	for _, program := range programs {
		if err := writeCompletions(program(), filepath.Join(args[0], "completions")); err != nil {
			return err
		}
		if err := writePages(program(), filepath.Join(args[0], "man1"), date); err != nil {
			return err
		}
	}
	return writePages(fleetd.NewCommand(), filepath.Join(args[0], "man1"), date)
}

// programs make the command of each program.
var programs = []func() *cobra.Command{root.NewCommand, lab.NewCommand}

// writeCompletions writes a script for each shell, under the name that the shell looks for.
func writeCompletions(cmd *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(
		cmd.GenBashCompletionFileV2(filepath.Join(dir, cmd.Name()+".bash"), true),
		cmd.GenZshCompletionFile(filepath.Join(dir, "_"+cmd.Name())),
		cmd.GenFishCompletionFile(filepath.Join(dir, cmd.Name()+".fish"), true),
	)
}
