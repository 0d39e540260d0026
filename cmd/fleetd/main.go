// Command fleetd is spamgate-fleetd, a NATS server for gates that share lists, in a process of its own.
package main

import (
	"context"
	"os"

	"spamgate/internal/cli"
	"spamgate/internal/cli/fleetd"
)

func main() {
	os.Exit(cli.Run(context.Background(), fleetd.NewCommand(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
