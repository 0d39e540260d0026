package restarts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"spamgate/internal/e2e/harness"
)

// A machine is a systemd that runs as on a machine of its own, with the shipped units, the
// user and the directories as a package installs them. It has its own process IDs, control
// groups and network. Its files are those of this machine; what it writes is in memory.
type machine struct {
	t    *testing.T
	root string // its files; the test can write there while it runs
	out  *harness.Output
	pid  int // of systemd
}

// bootScript starts systemd in the control group $1 and the root $2. It must see its own
// group only. Its units are those in /units, so it starts no other service and loads no
// settings of this machine's kernel, which are read-only for it.
const bootScript = `
exec unshare --mount --pid --fork --kill-child sh -ec '
	echo 0 >"$0/cgroup.procs" # 0 is the one who writes
	exec unshare --cgroup sh -ec "
		mount -t proc proc \"\$0/proc\"
		mount -t tmpfs none \"\$0/run\"
		mount -t tmpfs none \"\$0/tmp\"
		mount --rbind /dev \"\$0/dev\"
		mount -t sysfs -o ro sys \"\$0/sys\"
		mount -t cgroup2 none \"\$0/sys/fs/cgroup\"
		cd \"\$0\"
		mount --bind proc/sys proc/sys
		mount -o remount,bind,ro proc/sys
		mkdir -p outside
		pivot_root . outside
		umount -l /outside
		export container=test SYSTEMD_UNIT_PATH=/units SYSTEMD_GENERATOR_PATH=/nowhere
		exec /lib/systemd/systemd --system --unit=test.target --log-target=console --show-status=no" "$1"' "$1" "$2"
`

// newMachine makes the files of a machine. The test's goroutine, and what it starts, has
// the machine's network from then on.
func newMachine(t *testing.T) *machine {
	t.Helper()
	for name, pkg := range map[string]string{"systemctl": "systemd", "systemd-sysusers": "systemd", "unshare": "util-linux", "nsenter": "util-linux"} {
		harness.Program(t, name, pkg)
	}
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		harness.SkipMissing(t, "%v (Debian: apt-get install systemd)", err)
	}
	harness.PrivateMounts(t)
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil { // the thread ends with the test
		t.Skipf("a network of its own: %v", err)
	}
	for _, args := range []string{"link set lo up", "addr add 192.0.2.1/32 dev lo"} {
		if out, err := exec.Command(harness.Program(t, "ip", "iproute2"), strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", args, err, out)
		}
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=512m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	m := &machine{t: t, root: filepath.Join(dir, "root"), out: harness.NewOutput(t, "systemd")}
	upper, work := filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	for _, d := range []string{m.root, upper, work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("none", m.root, "overlay", 0, "lowerdir=/,upperdir="+upper+",workdir="+work); err != nil {
		t.Skipf("an overlay of this machine's files: %v", err)
	}
	m.install()
	return m
}

// install copies the files of a package to their places.
func (m *machine) install() {
	m.t.Helper()
	for to, from := range map[string]string{
		"usr/bin/spamgate":                 harness.Binary(m.t),
		"usr/bin/spamgate-fleetd":          harness.FleetdBinary(m.t),
		"units/spamgate.service":           "../../../packaging/systemd/spamgate.service",
		"units/spamgate.socket":            "../../../packaging/systemd/spamgate.socket",
		"units/spamgate-fleetd.service":    "../../../packaging/systemd/spamgate-fleetd.service",
		"usr/lib/sysusers.d/spamgate.conf": "../../../packaging/sysusers/spamgate.conf",
		"usr/lib/tmpfiles.d/spamgate.conf": "../../../packaging/tmpfiles/spamgate.conf",
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			m.t.Fatal(err)
		}
		m.write(to, string(text))
	}
	for _, program := range []string{"spamgate", "spamgate-fleetd"} {
		if err := os.Chmod(m.path("usr/bin/"+program), 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	for _, target := range []string{"test", "sysinit", "basic", "network-online", "sockets", "shutdown"} {
		m.write("units/"+target+".target", "[Unit]\nDefaultDependencies=no\n")
	}
	// There is no journal.
	m.write("units/spamgate.service.d/journal.conf", "[Service]\nStandardOutput=append:/var/log/spamgate.journal\nStandardError=append:/var/log/spamgate.journal\n")
}

// path returns where the test finds a file of the machine.
func (m *machine) path(name string) string { return filepath.Join(m.root, name) }

// write replaces a file of the machine.
func (m *machine) write(name, text string) {
	m.t.Helper()
	harness.WriteFile(m.t, m.path(name), text)
}

// journal returns what the gate wrote to standard error.
func (m *machine) journal() string {
	text, _ := os.ReadFile(m.path("var/log/spamgate.journal"))
	return string(text)
}

// boot starts systemd, which ends with the test.
func (m *machine) boot() {
	m.t.Helper()
	groups := filepath.Join(filepath.Dir(m.root), "groups")
	if err := os.Mkdir(groups, 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := unix.Mount("none", groups, "cgroup2", 0, ""); err != nil {
		m.t.Skipf("control groups of version 2: %v", err)
	}
	group := filepath.Join(groups, fmt.Sprintf("spamgate-e2e-%d", os.Getpid())+"-"+filepath.Base(m.t.Name()))
	if err := os.Mkdir(group, 0o755); err != nil {
		m.t.Skipf("a control group of its own: %v", err)
	}
	cmd := exec.Command("sh", "-c", bootScript, "sh", group, m.root)
	cmd.Stdout, cmd.Stderr = m.out, m.out
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		m.out.End()
		close(ended)
	}()
	m.t.Cleanup(func() {
		if m.t.Failed() {
			m.t.Logf("the gate's journal:\n%s", m.journal())
		}
		cmd.Process.Signal(syscall.SIGKILL) // --kill-child kills the others
		<-ended
		harness.WaitFor(m.t, "systemd's control group to be empty", func() bool { return removeGroup(group) })
		unix.Unmount(groups, unix.MNT_DETACH)
	})
	harness.WaitFor(m.t, "systemd to be ready", func() bool {
		select {
		case <-ended:
			m.t.Fatal("systemd has ended")
		default:
		}
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		m.pid, _ = strconv.Atoi(strings.TrimSpace(string(children)))
		return m.pid > 0 && m.show("", "Version") != ""
	})
}

// removeGroup removes a control group with those below it, and reports whether it is
// gone.
func removeGroup(group string) bool {
	below, _ := os.ReadDir(group)
	for _, d := range below {
		if d.IsDir() {
			removeGroup(filepath.Join(group, d.Name()))
		}
	}
	err := os.Remove(group)
	return err == nil || os.IsNotExist(err)
}

// command returns a command that root runs on the machine.
func (m *machine) command(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--target", strconv.Itoa(m.pid), "--pid", "--mount", "--net", "--wdns=/"}, args...)...)
}

// run runs a command on the machine, which has to succeed, and returns its output.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	out, err := m.command(args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// show returns a property of a unit or of the manager, or "" if there is no answer.
func (m *machine) show(unit, property string) string {
	args := []string{"systemctl", "show", "--property", property, "--value"}
	if unit != "" {
		args = append(args, unit)
	}
	out, err := m.command(args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
