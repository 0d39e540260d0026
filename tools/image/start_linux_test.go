package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"spamgate/internal/e2e/harness"
)

// A composeFile is what the test needs of compose.yaml.
type composeFile struct {
	Services map[string]struct {
		Volumes     []string
		Environment map[string]string
		ReadOnly    bool `yaml:"read_only"`
		Networks    struct {
			Mail struct {
				Address string `yaml:"ipv4_address"`
			}
		}
		Healthcheck struct{ Test []string }
	}
}

func readCompose(t *testing.T) (c composeFile) {
	t.Helper()
	text, err := os.ReadFile("../../packaging/compose.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A container is an unpacked image with the rights that compose.yaml gives it.
type container struct {
	t    *testing.T
	root string
}

// command returns a program of the container: it runs as the image's user, who has no
// capabilities, in the read-only root.
func (c *container) command(args ...string) *exec.Cmd {
	return &exec.Cmd{
		Path: args[0], Args: args, Dir: "/", Env: []string{"PATH=/usr/bin", "TZ=Asia/Kolkata"},
		SysProcAttr: &syscall.SysProcAttr{Chroot: c.root, Credential: &syscall.Credential{Uid: userID, Gid: userID}},
	}
}

// mount mounts something in the container.
func (c *container) mount(from, at, kind string, flags uintptr, data string) {
	c.t.Helper()
	if err := unix.Mount(from, filepath.Join(c.root, at), kind, flags, data); err != nil {
		c.t.Fatalf("mounting %s at %s: %v", from, at, err)
	}
}

// bind mounts a directory in the container, for reading only.
func (c *container) bind(from, at string) {
	c.t.Helper()
	c.mount(from, at, "", unix.MS_BIND, "")
	c.mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// unpackContainer unpacks the image of this architecture, and mounts what compose.yaml
// mounts, with a volume in memory.
func unpackContainer(t *testing.T, compose composeFile) *container {
	t.Helper()
	gate := compose.Services["gate"]
	if !gate.ReadOnly || len(gate.Volumes) != 2 || gate.Volumes[0] != "./compose:/etc/spamgate:ro" || gate.Volumes[1] != "state:"+stateDir {
		t.Fatalf("the test has to follow compose.yaml: read_only %t, volumes %q", gate.ReadOnly, gate.Volumes)
	}
	c := &container{t, t.TempDir()}
	if err := os.Chmod(filepath.Dir(c.root), 0o755); err != nil {
		t.Fatal(err)
	}
	flat := mutate.Extract(open(t, archives(t)[runtime.GOARCH]))
	unpack(t, c.root, flat)
	flat.Close()
	t.Cleanup(func() {
		for _, at := range []string{configDir, stateDir, ""} {
			unix.Unmount(filepath.Join(c.root, at), unix.MNT_DETACH)
		}
	})
	c.bind(c.root, "")
	config := t.TempDir() // a checkout may be where others cannot look
	for _, dir := range []string{config, filepath.Dir(config)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(config, os.DirFS("../../packaging/compose")); err != nil {
		t.Fatal(err)
	}
	c.bind(config, configDir)
	c.mount("none", stateDir, "tmpfs", 0, fmt.Sprintf("size=64m,mode=700,uid=%d,gid=%[1]d", userID))
	return c
}

// privateNetwork gives the test the network of compose.yaml: both addresses are this
// machine's, and the gate connects to Postfix from its own.
func privateNetwork(t *testing.T, gate, postfix string) {
	t.Helper()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil { // the thread ends with the test, see PrivateMounts
		t.Skipf("a network of its own: %v", err)
	}
	ip := harness.Program(t, "ip", "iproute2")
	for _, args := range []string{
		"link set lo up",
		"addr add " + gate + "/24 dev lo",
		"addr add " + postfix + "/24 dev lo",
		"route replace local " + postfix + " dev lo table local src " + gate,
	} {
		if out, err := exec.Command(ip, strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v\n%s", args, err, out)
		}
	}
}

// startPostfix starts the machine's Postfix as the script of its container configures it,
// with its files in a directory of the test, and returns that of its mailboxes.
func startPostfix(t *testing.T, environment map[string]string) (boxes string) {
	t.Helper()
	postfix := harness.Program(t, "postfix", "postfix")
	dir, err := os.MkdirTemp("", "spamgate-image")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	env := append(os.Environ(), "MAIL_CONFIG="+dir+"/conf", "BOXES="+dir+"/boxes")
	for k, v := range environment {
		env = append(env, k+"="+v)
	}
	out := harness.NewOutput(t, "postfix")
	script := `
umask 022
cd "$0"
mkdir conf queue data
chmod 755 . && chown postfix data
"$1"
postconf -e queue_directory="$0/queue" data_directory="$0/data" maillog_file="$0/log" maillog_file_prefixes="$0"
exec postfix start-fg`
	cmd := exec.Command("sh", "-ec", script, dir, compose("postfix/configure"))
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop := exec.Command(postfix, "stop")
		stop.Env = env
		stop.Run()
		cmd.Wait()
		out.End()
		if log, err := os.ReadFile(dir + "/log"); err == nil && t.Failed() {
			t.Logf("Postfix's log:\n%s", log)
		}
	})
	return dir + "/boxes"
}

// compose returns the absolute path of a file of packaging/compose.
func compose(name string) string {
	path, _ := filepath.Abs(filepath.Join("../../packaging/compose", name))
	return path
}

// TestStart starts the image with the configuration of compose.yaml before a Postfix that
// is configured by the script of its container. A listed sender is refused, another one's
// message is delivered, and Postfix knows the client.
func TestStart(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("unpacking an image with its owners needs root")
	}
	harness.Program(t, "tar", "tar")
	harness.PrivateMounts(t)
	file := readCompose(t)
	gate, postfix := file.Services["gate"], file.Services["postfix"]
	privateNetwork(t, gate.Networks.Mail.Address, postfix.Networks.Mail.Address)
	boxes := startPostfix(t, postfix.Environment)
	harness.WaitFor(t, "Postfix to answer", func() bool { return harness.Greets(net.JoinHostPort(postfix.Networks.Mail.Address, "10025")) })

	c := unpackContainer(t, file)
	check := c.command(program, "config", "check", "--config", config)
	if out, err := check.CombinedOutput(); err != nil {
		t.Fatalf("config check: %v\n%s", err, out)
	}
	img := open(t, archives(t)[runtime.GOARCH])
	settings, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if health := settings.Config.Healthcheck.Test; strings.Join(health, " ") != strings.Join(gate.Healthcheck.Test, " ") {
		t.Errorf("the health check is %q in the image, %q in compose.yaml", health, gate.Healthcheck.Test)
	}
	out := harness.NewOutput(t, "gate")
	serve := c.command(append(settings.Config.Entrypoint, settings.Config.Cmd...)...)
	serve.Stdout, serve.Stderr = out, out
	serve.SysProcAttr.Cloneflags = unix.CLONE_NEWPID // it is process 1, as in a container
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	defer out.End()
	defer serve.Process.Kill()
	addr := net.JoinHostPort(gate.Networks.Mail.Address, "2525")
	harness.WaitFor(t, "the gate to answer", func() bool { return harness.Greets(addr) })

	reply, err := harness.MustDial(t, addr).Verdict("someone@news.spam.example", "you@example.net")
	if err != nil || !strings.HasPrefix(reply, "550 5.7.1 ") {
		t.Errorf("a listed sender got %q, %v", reply, err)
	}
	harness.MustDialFrom(t, addr, "127.0.0.9").MustSend(t, "friend@example.org", "you@example.net", harness.SmallMessage("friend@example.org", "container"))
	var found []string
	harness.WaitFor(t, "the message in its mailbox", func() bool {
		found, _ = filepath.Glob(boxes + "/example.net/you/new/*")
		return len(found) > 0
	})
	mail, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	_, received, _ := strings.Cut(string(mail), "Received: ") // Postfix's own field
	from, _, _ := strings.Cut(received, "by mx.example.net (Postfix)")
	if len(found) != 1 || !strings.Contains(from, "[127.0.0.9]") {
		t.Errorf("%d messages delivered, want one that Postfix has from 127.0.0.9:\n%s", len(found), mail)
	}
	if out, err := c.command(gate.Healthcheck.Test[1:]...).CombinedOutput(); err != nil {
		t.Errorf("the health check: %v\n%s", err, out)
	}
	if !strings.Contains(out.String(), "+05:30") {
		t.Errorf("the program does not know the time zone Asia/Kolkata:\n%s", out)
	}
	// With a handover the container would end.
	handover, err := c.command(program, "handover", "--config", config).CombinedOutput()
	if err == nil || !strings.Contains(string(handover), "start a container of the new version instead") {
		t.Errorf("a handover: %v\n%s", err, handover)
	}
	harness.MustDial(t, addr)
	serve.Process.Signal(syscall.SIGTERM)
	if err := serve.Wait(); err != nil {
		t.Errorf("the gate's end: %v", err)
	}
}
