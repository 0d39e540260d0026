// Package local holds what the commands share to ask the gate of this machine: the running
// one, its lists and its history, and the owner of its files.
package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"runtime"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"spamgate/internal/cli"
)

// AsOwner runs the command line again as the owner of a directory, if this process is root and
// another user owns it: root must not follow what that user has put there. It reports whether it
// has, and then the command ends with err, which has the exit code of the other process. A command
// calls it before it reads its input, and before it opens anything in the directory. Files that the
// user names are opened as the owner, too.
func AsOwner(cmd *cobra.Command, dir string) (ran bool, err error) {
	again, err := commandAsOwner(dir, os.Args[1:]...)
	if again == nil || err != nil {
		return false, err
	}
	again.Stdin, again.Stdout, again.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	if err := runSignalled(again); err != nil {
		return true, fmt.Errorf("as user %d, who owns %s: %w", again.SysProcAttr.Credential.Uid, dir, err)
	}
	return true, cli.Exited(again.ProcessState.ExitCode())
}

// commandAsOwner returns a command that runs this program with other arguments as the owner of a
// directory. It returns nil if this process may act itself, see [AsOwner].
func commandAsOwner(dir string, args ...string) (*exec.Cmd, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return nil, nil
	}
	cmd := exec.Command(thisProgram(), args...)
	cmd.Args[0] = os.Args[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential(owner)}
	return cmd, nil
}

// thisProgram returns the file of this process. On Linux another user can start it even if he
// may not enter its directory, and after an upgrade has replaced it.
func thisProgram() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	program, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return program
}

// credential returns the user and the groups of an owner. One without a name has the group of
// the file.
func credential(owner *syscall.Stat_t) *syscall.Credential {
	c := &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	u, err := user.LookupId(strconv.Itoa(int(owner.Uid)))
	if err != nil {
		return c
	}
	if gid, err := strconv.ParseUint(u.Gid, 10, 32); err == nil {
		c.Gid = uint32(gid)
	}
	groups, _ := u.GroupIds() // without the others it has less access
	for _, group := range groups {
		if gid, err := strconv.ParseUint(group, 10, 32); err == nil {
			c.Groups = append(c.Groups, uint32(gid))
		}
	}
	return c
}

// runSignalled runs a program, and passes it the signals that this process gets. The exit code of
// the program is no error.
func runSignalled(program *exec.Cmd) error {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	if err := program.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- program.Wait() }()
	for {
		select {
		case err := <-done:
			if errors.As(err, new(*exec.ExitError)) {
				return nil
			}
			return err
		case s := <-signals:
			_ = program.Process.Signal(s) // it may have exited
		}
	}
}
