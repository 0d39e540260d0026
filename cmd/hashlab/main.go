// Command hashlab is the hash laboratory of spamgate.
package main

import (
	"context"
	"os"

	"spamgate/internal/cli"
	"spamgate/internal/cli/lab"
)

func main() {
	os.Exit(cli.Run(context.Background(), lab.NewCommand(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
