package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// TestMain lets the tests run this test binary as a command that acts as an owner.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "as-owner" {
		root := &cobra.Command{Use: "test", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(asOwnerCommand())
		os.Exit(Run(context.Background(), root, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// asOwnerCommand returns a command that says who it is, repeats its input, waits for a signal if
// told to, and ends in a way that can be chosen.
func asOwnerCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "as-owner DIR END", Args: cobra.ExactArgs(2)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := Interruptible(cmd)
		defer stop()
		if ran, err := AsOwner(cmd, args[0]); ran || err != nil {
			return err
		}
		groups, _ := os.Getgroups()
		fmt.Fprintln(cmd.OutOrStdout(), os.Getuid(), os.Geteuid(), os.Getgid(), groups)
		if args[1] == "signal" {
			<-ctx.Done()
			return ErrNo
		}
		if _, err := io.Copy(cmd.ErrOrStderr(), cmd.InOrStdin()); err != nil {
			return err
		}
		switch args[1] {
		case "no":
			return ErrNo
		case "error":
			return errors.New("broken")
		case "killed":
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	}
	NameErrors(cmd)
	return cmd
}

// ownedBy returns a directory that a user without a name owns, below one that he may not enter.
func ownedBy(t *testing.T, uid int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := filepath.Join(t.TempDir(), "state")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, uid, 12345)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAsOwner(t *testing.T) {
	const stranger = 54321 // has no name, so the group of the directory counts
	for _, c := range []struct {
		owner int
		end   string
		code  int
		who   string
		says  string
	}{
		{stranger, "", 0, "54321 54321 12345 []", "input"},
		{stranger, "no", 1, "54321 54321 12345 []", "input"},
		{stranger, "error", 2, "54321 54321 12345 []", "inputtest: test as-owner: broken\n"},
		{stranger, "killed", 2, "54321 54321 12345 []", "input"},
		{0, "no", 1, "0 0 ", "input"},
	} {
		cmd := exec.Command(os.Args[0], "as-owner", ownedBy(t, c.owner), c.end)
		cmd.Stdin = strings.NewReader("input")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.HasPrefix(out.String(), c.who) || errs.String() != c.says {
			t.Errorf("owner %d, %s: exit code %d, %q, %q; want %d, %q, %q", c.owner, c.end, code, &out, &errs, c.code, c.who, c.says)
		}
	}
}

// TestAsOwnerNamed: a user with a name has his own groups, and not those of the file.
func TestAsOwnerNamed(t *testing.T) {
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := nobody.GroupIds()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d %d %s %s\n", uid, uid, nobody.Gid, groups)
	out, err := exec.Command(os.Args[0], "as-owner", ownedBy(t, uid), "").CombinedOutput()
	if err != nil || string(out) != want {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}

// TestAsOwnerSignal: a signal reaches the other process, which ends the command.
func TestAsOwnerSignal(t *testing.T) {
	cmd := exec.Command(os.Args[0], "as-owner", ownedBy(t, 54321), "signal")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it waits
		t.Error(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Error(err)
	}
	if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v, want exit code 1", cmd.ProcessState)
	}
}

// TestAsOwnerMissing: without the directory there is no owner.
func TestAsOwnerMissing(t *testing.T) {
	if ran, err := AsOwner(asOwnerCommand(), filepath.Join(t.TempDir(), "missing")); ran || err != nil {
		t.Errorf("%v, %v", ran, err)
	}
}
