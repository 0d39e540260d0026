package console

import (
	"bufio"
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal returns both ends of a new terminal.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { person.Close() })
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// echoes reports whether a terminal shows what is typed.
func echoes(t *testing.T, f *os.File) bool {
	t.Helper()
	settings, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Error(err)
		return false
	}
	return settings.Lflag&unix.ECHO != 0
}

// A password is asked for on the terminal, which does not show it.
func TestPrompt(t *testing.T) {
	for _, c := range []struct {
		typed      []string
		want, says string
	}{
		{[]string{"correct horse battery", "correct horse battery"}, "correct horse battery", ""},
		{[]string{"correct horse battery", "correct horse batter"}, "", "the two passwords differ"},
		{[]string{""}, "", "the password is empty"},
	} {
		person, program := terminal(t)
		cmd := newUserPasswd()
		cmd.SetContext(t.Context())
		cmd.SetIn(program)
		cmd.SetErr(program)
		var typing sync.WaitGroup
		typing.Go(func() {
			lines := bufio.NewReader(person)
			for _, line := range c.typed {
				_, _ = lines.ReadString(':') // the question
				for echoes(t, program) {
					// The question comes just before the echo ends.
				}
				_, _ = person.WriteString(line + "\n")
			}
		})
		got, err := prompt(cmd)
		typing.Wait()
		if got != c.want || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %q, %v", c.typed, got, err)
		}
		if !echoes(t, program) {
			t.Errorf("%q: the terminal does not echo any more", c.typed)
		}
	}
}

// An interrupt leaves the terminal as it was.
func TestPromptInterrupted(t *testing.T) {
	person, program := terminal(t)
	ctx, interrupt := context.WithCancel(t.Context())
	var typing sync.WaitGroup
	typing.Go(func() {
		_, _ = bufio.NewReader(person).ReadString(':')
		for echoes(t, program) {
		}
		interrupt()
	})
	if got, err := ask(ctx, program, program, "Password: "); err == nil {
		t.Errorf("%q", got)
	}
	typing.Wait()
	if !echoes(t, program) || !term.IsTerminal(int(program.Fd())) {
		t.Error("the terminal does not echo any more")
	}
}
