package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Disk is an ext4 file system in a file, mounted on a directory. Its power can be cut: then it has
// what programs have synced, and of all else only what the kernel happened to have written. A test
// that uses it has [OwnMounts].
type Disk struct {
	t     testing.TB
	dir   string
	image string
}

// NewDisk mounts a new disk on a directory that exists and is empty.
func NewDisk(t testing.TB, dir string) *Disk {
	t.Helper()
	if out, err := exec.Command(Program(t, "losetup", "mount"), "--find").CombinedOutput(); err != nil {
		t.Skipf("loop devices: %v (needs a machine or a container that has them)\n%s", err, out)
	}
	d := &Disk{t: t, dir: dir, image: filepath.Join(t.TempDir(), "disk")}
	f, err := os.Create(d.image)
	if err == nil {
		err = f.Truncate(1 << 30) // it has holes
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	d.run("mke2fs", "-q", "-t", "ext4", d.image)
	d.mount()
	t.Cleanup(func() { d.run("umount", "--lazy", d.dir) })
	return d
}

// run runs a program of Debian's essential packages.
func (d *Disk) run(program string, args ...string) {
	d.t.Helper()
	if out, err := exec.Command(Program(d.t, program, "mount"), args...).CombinedOutput(); err != nil {
		d.t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
}

// mount mounts the image. The kernel is to write nothing by itself for as long as a test runs.
func (d *Disk) mount() {
	d.t.Helper()
	d.run("mount", "-o", "loop,commit=3600", d.image, d.dir)
}

// PowerCut cuts the power of a machine whose processes do not run any more, and mounts its disk
// again.
func (d *Disk) PowerCut() {
	d.t.Helper()
	var mounted string
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		d.t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); fields[1] == d.dir {
			mounted = filepath.Base(fields[0])
		}
	}
	writes := func() string { // what is on its way to the disk, and what has arrived
		var all []string
		for _, file := range []string{"inflight", "stat"} {
			text, err := os.ReadFile(filepath.Join("/sys/block", mounted, file))
			if err != nil {
				d.t.Fatal(err)
			}
			all = append(all, strings.Fields(string(text))...)
		}
		return strings.Join(all, " ")
	}
	WaitFor(d.t, "the disk is copied while nothing is written", func() bool {
		before := writes()
		if !strings.HasPrefix(before, "0 0 ") {
			return false
		}
		d.run("cp", "--sparse=always", d.image, d.image+".cut")
		return writes() == before
	})
	d.run("umount", "--lazy", d.dir) // a client may be about to connect to a socket there
	if err := os.Rename(d.image+".cut", d.image); err != nil {
		d.t.Fatal(err)
	}
	d.mount()
}
