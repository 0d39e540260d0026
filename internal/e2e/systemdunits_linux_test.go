package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// userManager is a systemd --user with the shipped units. It has process numbers,
// a control group and a /run of its own, so that nothing of the machine's is touched
// and nothing is left over.
type userManager struct {
	t   *testing.T
	dir string // the units, and what they need
	out *lines
	pid int // of the first process of its namespace
}

// managerScript starts the program $2 in the control group $1. A user manager moves
// all processes of the group that it finds itself in. So it may see its own group
// only; processes outside have no number here, and would be shown as 0.
const managerScript = `
exec unshare --mount --pid --fork --kill-child --mount-proc sh -ec '
	echo 0 >"$0/cgroup.procs" # 0 is the one who writes
	exec unshare --cgroup sh -ec "
		mount -t cgroup2 none /sys/fs/cgroup
		! grep -qx 0 /sys/fs/cgroup/cgroup.procs || exit 3
		\"\$0\" --user --log-target=console &
		wait" "$1"' "$1" "$2"
`

// startUserManager starts systemd with units in the folder units of dir.
func startUserManager(t *testing.T, dir string) *userManager {
	t.Helper()
	for name, pkg := range map[string]string{"systemctl": "systemd", "unshare": "util-linux", "nsenter": "util-linux"} {
		tool(t, name, pkg)
	}
	program := "/lib/systemd/systemd"
	if _, err := os.Stat(program); err != nil {
		missing(t, "%v (Debian: apt-get install systemd)", err)
	}
	privateMounts(t)
	if err := unix.Mount("none", "/run", "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"/run/systemd/system", "/run/user/0", "/run/cgroup"} { // the first says that systemd runs
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat("/sys/fs/cgroup"); err != nil { // in a chroot without /sys
		if err := errors.Join(unix.Mount("none", "/sys", "tmpfs", 0, "size=1m"), os.MkdirAll("/sys/fs/cgroup", 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("none", "/run/cgroup", "cgroup2", 0, ""); err != nil {
		t.Skipf("control groups of version 2: %v", err)
	}
	group := fmt.Sprintf("/run/cgroup/spamgate-e2e-%d", os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("a control group of its own: %v", err)
	}
	m := &userManager{t: t, dir: dir, out: newLines(t, "systemd")}
	cmd := exec.Command("sh", "-c", managerScript, "sh", group, program)
	cmd.Env, cmd.Stdout, cmd.Stderr = m.env(), m.out, m.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		m.out.end()
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGKILL) // and with it, by --kill-child, all others
		<-ended
		pollFor(t, "systemd's control group to be empty", func() bool { return removeGroup(group) })
		unix.Unmount("/run/cgroup", unix.MNT_DETACH)
		unix.Unmount("/run", unix.MNT_DETACH)
	})
	pollFor(t, "systemd to answer", func() bool {
		select {
		case <-ended:
			t.Fatal("systemd has ended")
		default:
		}
		children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		m.pid, _ = strconv.Atoi(strings.TrimSpace(string(children)))
		return m.pid > 0 && m.show("", "Version") != ""
	})
	return m
}

// removeGroup removes a control group with those in it, and reports whether it is
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

func (m *userManager) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.dir, "XDG_CONFIG_HOME=" + m.dir, "XDG_RUNTIME_DIR=/run/user/0",
		"SYSTEMD_UNIT_PATH=" + filepath.Join(m.dir, "units") + ":"}
}

// ctl runs systemctl, where systemd can see who asks, and returns what it has said.
func (m *userManager) ctl(args ...string) (string, error) {
	cmd := exec.Command("nsenter", append([]string{"--target", strconv.Itoa(m.pid), "--pid", "--mount", "systemctl", "--user"}, args...)...)
	cmd.Env = m.env()
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (m *userManager) mustCtl(args ...string) {
	m.t.Helper()
	if out, err := m.ctl(args...); err != nil {
		m.t.Fatalf("systemctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// show returns a property of a unit, or of the manager; "" where it does not answer.
func (m *userManager) show(unit, property string) string {
	args := []string{"show", "--property", property, "--value"}
	if unit != "" {
		args = append(args, unit)
	}
	out, err := m.ctl(args...)
	if err != nil {
		return ""
	}
	return out
}

// shippedUnits puts the units of docs/systemd into dir, as they are, with files
// beside them that change paths, the port, and what only the system's manager can do.
func shippedUnits(t *testing.T, dir, addr string) {
	t.Helper()
	for _, name := range []string{"spamgate.service", "spamgate.socket"} {
		text, err := os.ReadFile(filepath.Join("../../docs/systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, "units", name), string(text))
	}
	writeFile(t, filepath.Join(dir, "units", "spamgate.service.d", "test.conf"), fmt.Sprintf(`[Service]
ExecStart=
ExecStart=%s serve --config %s
StandardError=append:%s
DynamicUser=no
StateDirectory=
ProtectSystem=no
ProtectHome=no
PrivateTmp=no
PrivateDevices=no
`, binary(t), filepath.Join(dir, "config.toml"), filepath.Join(dir, "log")))
	writeFile(t, filepath.Join(dir, "units", "spamgate.socket.d", "test.conf"), "[Socket]\nListenStream=\nListenStream="+addr+"\n")
}

// TestStartFailsForLong has the shipped units start a gate that cannot: its
// configuration is broken, and then a list is missing. Clients are never refused,
// wait, and are served as soon as the list is there.
func TestStartFailsForLong(t *testing.T) {
	t.Parallel()
	dir, addr := shortDir(t), freeAddr(t)
	shippedUnits(t, dir, addr)
	config := setup{listen: "systemd"}.config()
	writeFile(t, filepath.Join(dir, "config.toml"), config+"[[list]\n")
	m := startUserManager(t, dir)
	m.mustCtl("start", "spamgate.socket")

	served := make(chan error, 100)
	waiting := 0
	add := func() {
		t.Helper()
		c, err := connect(addr)
		if err != nil {
			t.Fatalf("client %d after %s restarts: %v", waiting, m.show("spamgate.service", "NRestarts"), err)
		}
		waiting++
		go func() {
			defer c.Close()
			served <- c.mailLate()
		}()
	}
	// A connection has the service started, as systemd's sockets do.
	add()
	const enough = 4 // of each sort; systemd's own limit is five in ten seconds
	seen := 0
	failMore := func(why string) {
		t.Helper()
		until := seen + enough
		pollFor(t, fmt.Sprintf("%d more failed starts, %s", enough, why), func() bool {
			n, err := strconv.Atoi(m.show("spamgate.service", "NRestarts"))
			if err != nil {
				t.Fatal(err)
			}
			if state := m.show("spamgate.socket", "ActiveState"); state != "active" {
				t.Fatalf("the socket is %s after %d restarts", state, n)
			}
			if n > seen {
				seen = n
				add()
			}
			return n >= until
		})
	}
	failMore("with a broken configuration")
	writeFile(t, filepath.Join(dir, "config.toml"), config)
	failMore("without the list")
	writeFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	add()
	for range waiting {
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(lateLimit):
			t.Fatal("a client was not served")
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Count(string(text), "spamgate: ")
	for _, why := range []string{"config.toml:", "blocked.txt"} {
		if !strings.Contains(string(text), why) {
			t.Errorf("the log does not say %q", why)
		}
	}
	if said < 2*enough {
		t.Errorf("%d starts have said why they failed, want %d", said, 2*enough)
	}
	t.Logf("%d failed starts, %d clients waited and were served", said, waiting)
	m.mustCtl("stop", "spamgate.socket", "spamgate.service")
	if result := m.show("spamgate.service", "Result"); result != "success" {
		t.Errorf("the service's result is %s", result)
	}
}

// mailLate sends a message, once there is somebody who greets.
func (c *client) mailLate() error {
	c.SetReadDeadline(time.Now().Add(lateLimit))
	if _, err := c.in.Peek(1); err != nil {
		return fmt.Errorf("waiting for the greeting: %w", err)
	}
	for _, say := range []func() (string, error){
		c.reply,
		func() (string, error) { return c.ask("EHLO client.example") },
		func() (string, error) {
			return c.send("a@example.com", "b@example.net", []byte(letter("a@example.com", "late")))
		},
	} {
		if reply, err := say(); err != nil || reply[0] != '2' {
			return fmt.Errorf("heard %q, %w", reply, err)
		}
	}
	return nil
}
