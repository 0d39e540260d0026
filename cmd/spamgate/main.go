// Command spamgate is an SMTP proxy that stands in front of a mail server and
// turns listed senders away.
package main

import (
	"context"
	"io"
	"os"

	"spamgate/internal/cli"
	"spamgate/internal/cli/root"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(ctx, root.NewCommand(), args, stdin, stdout, stderr)
}
