package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"spamgate/internal/cli"
)

// maxLine is more than the longest password.
const maxLine = 64 << 10

var errEmpty = errors.New("the password is empty: for a user whom only a proxy logs in, write --no-password")

// readLine returns the only line of a program's output. Its newline is not part of the password.
func readLine(r io.Reader) (string, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxLine))
	if err != nil {
		return "", fmt.Errorf("reading the password: %w", err)
	}
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	switch line = bytes.TrimSuffix(line, []byte("\r")); {
	case len(rest) > 0:
		return "", errors.New("standard input has several lines, and a password has one")
	case len(line) == 0:
		return "", errEmpty
	}
	return string(line), nil
}

// prompt asks for a new password twice, on a terminal that does not show it.
func prompt(cmd *cobra.Command) (string, error) {
	file, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return "", errors.New("there is no terminal to ask for the password: write --password-stdin")
	}
	ctx, stop := cli.Interruptible(cmd)
	defer stop()
	first, err := ask(ctx, file, cmd.ErrOrStderr(), "Password (at least 12 characters): ")
	if err != nil {
		return "", err
	}
	if first == "" {
		return "", errEmpty
	}
	again, err := ask(ctx, file, cmd.ErrOrStderr(), "Once more: ")
	if err != nil {
		return "", err
	}
	if first != again {
		return "", errors.New("the two passwords differ: nothing has changed")
	}
	return first, nil
}

// ask reads a line without echo. An interrupt ends it, and the terminal is as before.
func ask(ctx context.Context, file *os.File, stderr io.Writer, question string) (string, error) {
	fd := int(file.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(stderr, question)
	type answer struct {
		text []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		answers <- answer{text, err}
	}()
	select {
	case a := <-answers:
		fmt.Fprintln(stderr)
		if a.err != nil {
			return "", fmt.Errorf("reading the password: %w", a.err)
		}
		return string(a.text), nil
	case <-ctx.Done():
		fmt.Fprintln(stderr)
		return "", errors.Join(errors.New("interrupted: nothing has changed"), term.Restore(fd, before))
	}
}
