package restarts

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

	"spamgate/internal/e2e/harness"
)

// A userManager is a "systemd --user" with the shipped units. It has its own process
// IDs, control group and /run, so it changes nothing of the machine and leaves nothing
// behind.
type userManager struct {
	t   *testing.T
	dir string // the units and their files
	out *harness.Output
	pid int // of the first process of its namespace
}

// managerScript starts the program $2 in the control group $1. A user manager moves all
// processes of its control group. So it must see only its own group: processes outside
// have no ID in its namespace, and would have the ID 0.
const managerScript = `
exec unshare --mount --pid --fork --kill-child --mount-proc sh -ec '
	echo 0 >"$0/cgroup.procs" # 0 is the one who writes
	exec unshare --cgroup sh -ec "
		mount -t cgroup2 none /sys/fs/cgroup
		! grep -qx 0 /sys/fs/cgroup/cgroup.procs || exit 3
		\"\$0\" --user --log-target=console &
		wait" "$1"' "$1" "$2"
`

// startUserManager starts systemd with the units in the folder units of dir.
func startUserManager(t *testing.T, dir string) *userManager {
	t.Helper()
	for name, pkg := range map[string]string{"systemctl": "systemd", "unshare": "util-linux", "nsenter": "util-linux"} {
		harness.Program(t, name, pkg)
	}
	program := "/lib/systemd/systemd"
	if _, err := os.Stat(program); err != nil {
		harness.SkipMissing(t, "%v (Debian: apt-get install systemd)", err)
	}
	harness.PrivateMounts(t)
	if err := unix.Mount("none", "/run", "tmpfs", 0, "size=8m"); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"/run/systemd/system", "/run/user/0", "/run/cgroup"} { // systemctl takes the first as a sign of systemd
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
	m := &userManager{t: t, dir: dir, out: harness.NewOutput(t, "systemd")}
	cmd := exec.Command("sh", "-c", managerScript, "sh", group, program)
	cmd.Env, cmd.Stdout, cmd.Stderr = m.env(), m.out, m.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		m.out.End()
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGKILL) // --kill-child kills the others
		<-ended
		harness.WaitFor(t, "systemd's control group to be empty", func() bool { return removeGroup(group) })
		unix.Unmount("/run/cgroup", unix.MNT_DETACH)
		unix.Unmount("/run", unix.MNT_DETACH)
	})
	harness.WaitFor(t, "systemd to answer", func() bool {
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

// env returns the environment of systemd and systemctl.
func (m *userManager) env() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.dir, "XDG_CONFIG_HOME=" + m.dir, "XDG_RUNTIME_DIR=/run/user/0",
		"SYSTEMD_UNIT_PATH=" + filepath.Join(m.dir, "units") + ":"}
}

// ctl runs systemctl in systemd's namespaces and returns its output.
func (m *userManager) ctl(args ...string) (string, error) {
	cmd := exec.Command("nsenter", append([]string{"--target", strconv.Itoa(m.pid), "--pid", "--mount", "systemctl", "--user"}, args...)...)
	cmd.Env = m.env()
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// mustCtl runs systemctl, which has to succeed.
func (m *userManager) mustCtl(args ...string) {
	m.t.Helper()
	if out, err := m.ctl(args...); err != nil {
		m.t.Fatalf("systemctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// show returns a property of a unit or of the manager, or "" if there is no answer.
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

// shippedUnits copies the units of packaging/systemd to dir. Files beside them change paths,
// the port, and settings that need the system's manager.
func shippedUnits(t *testing.T, dir, addr string) {
	t.Helper()
	for _, name := range []string{"spamgate.service", "spamgate.socket"} {
		text, err := os.ReadFile(filepath.Join("../../../packaging/systemd", name))
		if err != nil {
			t.Fatal(err)
		}
		harness.WriteFile(t, filepath.Join(dir, "units", name), string(text))
	}
	harness.WriteFile(t, filepath.Join(dir, "units", "spamgate.service.d", "test.conf"), fmt.Sprintf(`[Service]
ExecStart=
ExecStart=%s serve --config %s
StandardError=append:%s
User=
Group=
StateDirectory=
LogsDirectory=
RuntimeDirectory=
ProtectSystem=no
ProtectHome=no
ProtectProc=default
PrivateTmp=no
PrivateDevices=no
PrivateMounts=no
PrivateUsers=no
ProtectControlGroups=no
ProtectKernelTunables=no
ProtectKernelModules=no
ProtectKernelLogs=no
ProtectClock=no
ProtectHostname=no
`, harness.Binary(t), filepath.Join(dir, "config.toml"), filepath.Join(dir, "log")))
	harness.WriteFile(t, filepath.Join(dir, "units", "spamgate.socket.d", "test.conf"), "[Socket]\nListenStream=\nListenStream="+addr+"\n")
}

// TestStartFailsForLong has the shipped units start a gate that cannot start: its
// configuration is broken, and then a list is missing. Clients are never refused; they
// wait, and are served as soon as the list is there.
func TestStartFailsForLong(t *testing.T) {
	t.Parallel()
	dir, addr := shortDir(t), harness.FreeAddr(t)
	shippedUnits(t, dir, addr)
	config := harness.Setup{Listen: "systemd"}.Config()
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), config+"[[list]\n")
	m := startUserManager(t, dir)
	m.mustCtl("start", "spamgate.socket")

	served := make(chan error, 100)
	waiting := 0
	add := func() {
		t.Helper()
		c, err := harness.Connect(addr)
		if err != nil {
			t.Fatalf("client %d after %s restarts: %v", waiting, m.show("spamgate.service", "NRestarts"), err)
		}
		waiting++
		go func() {
			defer c.Close()
			served <- mailLate(c)
		}()
	}
	// The first connection starts the service.
	add()
	const enough = 4 // failed starts of each kind; systemd's default limit is five in ten seconds
	seen := 0
	failMore := func(why string) {
		t.Helper()
		until := seen + enough
		harness.WaitFor(t, fmt.Sprintf("%d more failed starts, %s", enough, why), func() bool {
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
	harness.WriteFile(t, filepath.Join(dir, "config.toml"), config)
	failMore("without the list")
	harness.WriteFile(t, filepath.Join(dir, "blocked.txt"), "spam.example\n")
	add()
	for range waiting {
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(harness.WorkTimeout):
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

// mailLate waits for the greeting, however late, and sends a message.
func mailLate(c *harness.Client) error {
	c.SetReadDeadline(time.Now().Add(harness.WorkTimeout))
	if _, err := c.Reader.Peek(1); err != nil {
		return fmt.Errorf("waiting for the greeting: %w", err)
	}
	for _, say := range []func() (string, error){
		c.Reply,
		func() (string, error) { return c.Ask("EHLO client.example") },
		func() (string, error) {
			return c.Send("a@example.com", "b@example.net", []byte(harness.SmallMessage("a@example.com", "late")))
		},
	} {
		if reply, err := say(); err != nil || reply[0] != '2' {
			return fmt.Errorf("heard %q, %w", reply, err)
		}
	}
	return nil
}
