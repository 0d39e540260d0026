package fleet

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestPowerLoss cuts the power of one machine or more, again and again, while all gates edit: what
// was not synced is lost. No acknowledged edit is, with three servers and with one, and no gate
// refuses to start. SPAMGATE_FLEET_CUTS is how often.
func TestPowerLoss(t *testing.T) {
	if !harness.OwnMounts(t) {
		return
	}
	for _, machines := range []int{3, 1} {
		t.Run(fmt.Sprint("machines ", machines), func(t *testing.T) {
			seed := fleetSeed(t)
			k, disks := startOnDisks(t, seed, machines)
			most := count(t, "SPAMGATE_FLEET_CUTS", 2, 50)
			k.run(seed, func() { k.powerCut(disks) }, func(n int) bool { return n == most })
		})
	}
}

// TestDisk cuts the power of a disk: only what was synced is on it then.
func TestDisk(t *testing.T) {
	if !harness.OwnMounts(t) {
		return
	}
	dir := t.TempDir()
	disk := harness.NewDisk(t, dir)
	for _, name := range []string{"forgotten", "synced"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err == nil {
			_, err = f.WriteString("text")
		}
		if err == nil && name == "synced" {
			err = f.Sync()
		}
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	disk.PowerCut()
	for name, want := range map[string]string{"forgotten": "", "synced": "text"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); string(text) != want || name == "synced" && err != nil {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// startOnDisks starts gates with a server beside each, and the state directory of both on a disk of
// its own.
func startOnDisks(t *testing.T, seed uint64, machines int) (k *kills, disks []*harness.Disk) {
	t.Helper()
	k = &kills{T: t, r: rand.New(rand.NewPCG(seed, 0)), done: map[string]int{}}
	var dirs []string
	for _, s := range initFleet(t, []string{"mx1", "mx2", "mx3"}[:machines]...) {
		dir := dirOf(t, s)
		state := filepath.Join(dir, "state")
		if err := os.Mkdir(state, 0o700); err != nil {
			t.Fatal(err)
		}
		disks, dirs = append(disks, harness.NewDisk(t, state)), append(dirs, dir)
	}
	k.gates = startMachines(t, dirs...)
	harness.WaitFor(t, "the fleet takes an edit", func() bool { return k.gates[0].edit("add", listed) == nil })
	k.c = clusterOf(t, k.gates)
	if machines > 1 {
		harness.WaitFor(t, "the buckets are on all servers", k.c.whole)
	}
	return k, disks
}

// powerCut cuts the power of some machines, and starts them again.
func (k *kills) powerCut(disks []*harness.Disk) {
	k.Helper()
	first, n := k.r.IntN(len(disks)), 1+k.r.IntN(len(disks))
	what := fmt.Sprint("power of ", n)
	k.done[what]++
	k.pause()
	for i := range n {
		k.gates[(first+i)%len(disks)].stop()
	}
	for i := range n {
		disks[(first+i)%len(disks)].PowerCut()
	}
	for i := range n {
		k.gates[(first+i)%len(disks)].start()
	}
	k.goesOn(what)
}

// TestFlippedBits flips bits in files of one server's store while it does not run, again and again,
// while the other gates edit. With three servers no acknowledged edit is lost. With one, the gates
// have the lists, and what the server has lost is told. SPAMGATE_FLEET_FLIPS is how often.
func TestFlippedBits(t *testing.T) {
	for _, machines := range []int{3, 1} {
		t.Run(fmt.Sprint("machines ", machines), func(t *testing.T) {
			t.Parallel()
			seed := fleetSeed(t)
			k := &kills{T: t, r: rand.New(rand.NewPCG(seed, 0)), done: map[string]int{}}
			k.gates = startServers(t, initFleet(t, []string{"mx1", "mx2", "mx3"}[:machines]...))
			harness.WaitFor(t, "the fleet takes an edit", func() bool { return k.gates[0].edit("add", listed) == nil })
			k.c = clusterOf(t, k.gates)
			most := count(t, "SPAMGATE_FLEET_FLIPS", 2, 50)
			k.run(seed, k.flip, func(n int) bool { return n == most })
		})
	}
}

// flip stops a gate and its server, flips bits in a file of the server, and starts both again. If the
// server says that the store is damaged, it does what it is told.
func (k *kills) flip() {
	k.Helper()
	if len(k.gates) > 1 {
		harness.WaitFor(k, "all servers have all", k.c.whole) // only this one is damaged
	}
	g := k.gates[k.r.IntN(len(k.gates))]
	k.pause()
	g.stop()
	store := filepath.Join(g.Dir, "state", "fleet", "server")
	var files []string
	err := filepath.WalkDir(store, func(file string, e fs.DirEntry, err error) error {
		if info, statErr := os.Lstat(file); err == nil && statErr == nil && info.Mode().IsRegular() && info.Size() > 0 {
			files = append(files, file)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		k.Fatal(files, err)
	}
	file := files[k.r.IntN(len(files))]
	text, err := os.ReadFile(file)
	if err != nil {
		k.Fatal(err)
	}
	bits := 1 + k.r.IntN(8)
	for range bits {
		text[k.r.IntN(len(text))] ^= 1 << k.r.IntN(8)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		k.Fatal(err)
	}
	name, _ := filepath.Rel(store, file)
	k.Logf("%s: %d bits in %s of %d bytes", g.name, bits, name, len(text))
	k.done[filepath.Ext(name)]++
	g.start()
	before, _ := k.made()
	harness.WaitFor(k, "edits are made after a flip in "+name, func() bool {
		if strings.Contains(g.Server.Log.String(), "the store is damaged") {
			k.done["told"]++
			g.stop()
			if err := os.RemoveAll(store); err != nil {
				k.Fatal(err)
			}
			g.start()
		}
		current, _ := k.made()
		return current > before+5
	})
}
