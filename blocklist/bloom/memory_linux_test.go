package bloom

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"spamgate/internal/disposable"
)

func TestWholeHugePages(t *testing.T) {
	room := make([]byte, 4*hugePage)
	aligned := room[hugePage-int(uintptr(unsafe.Pointer(&room[0]))%hugePage):]
	for _, c := range []struct{ from, to, want int }{
		{0, 0, 0},
		{0, hugePage, hugePage},
		{0, hugePage - 1, 0},
		{1, hugePage, 0},
		{1, 2 * hugePage, hugePage},
		{hugePage - 1, 2*hugePage + 1, hugePage},
		{0, 2*hugePage + 1, 2 * hugePage},
		{hugePage / 2, hugePage/2 + 10, 0},
	} {
		got := wholeHugePages(aligned[c.from:c.to])
		if len(got) != c.want {
			t.Errorf("from %d to %d: %d bytes, want %d", c.from, c.to, len(got), c.want)
		} else if len(got) > 0 && uintptr(unsafe.Pointer(&got[0]))%hugePage != 0 {
			t.Errorf("from %d to %d: the bytes do not begin where a huge page does", c.from, c.to)
		}
	}
}

// TestUseHugePagesChangesNothing fills a filter on both sides of the call.
func TestUseHugePagesChangesNothing(t *testing.T) {
	f, plain := newClassic(t, ClassicBits), newClassic(t, ClassicBits)
	keys := disposable.Domains()
	half := len(keys) / 2
	f.AddAll(keys[:half])
	f.UseHugePages()
	f.AddAll(keys[half:])
	plain.AddAll(keys)
	if !bytes.Equal(f.bits, plain.bits) {
		t.Error("the bitmap is another")
	}
}

// resident is how much of the process is in memory, in bytes.
func resident(t *testing.T) int {
	t.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(text), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// TestEmptyPagesStayAway wants a filter of few keys to take no more memory: the kernel is not to
// make huge pages of zeros.
func TestEmptyPagesStayAway(t *testing.T) {
	f := newClassic(t, ClassicBits)
	bits, err := unix.Mmap(-1, 0, len(f.bits), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(bits)
	f.bits = bits
	f.AddAll(disposable.Domains()[:20])
	present := func() (n int) {
		pages := make([]byte, len(bits)/os.Getpagesize())
		if _, _, err := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&bits[0])), uintptr(len(bits)), uintptr(unsafe.Pointer(&pages[0]))); err != 0 {
			t.Fatal(err)
		}
		for _, p := range pages {
			n += int(p & 1)
		}
		return n
	}
	before := present()
	f.UseHugePages()
	if after := present(); before == 0 || after != before {
		t.Errorf("%d pages of the filter are in memory, and were %d", after, before)
	}
}

// TestHugePagesAreGivenBack makes and drops filters as a daemon does whose lists
// change, with other memory coming and going between. What is resident must not
// grow by a filter.
func TestHugePagesAreGivenBack(t *testing.T) {
	if raceEnabled {
		t.Skip("what watches for races needs several times the memory that it watches, and keeps it")
	}
	swap := func(live *Filter) *Filter {
		f := newClassic(t, ClassicBits)
		f.AddAll(disposable.Domains()[:10_000])
		f.UseHugePages()
		var other [][]byte
		for range 100 {
			other = append(other, make([]byte, 100_000))
		}
		runtime.KeepAlive(other)
		runtime.KeepAlive(live)
		return f
	}
	var live *Filter
	for range 3 {
		live = swap(live)
	}
	before := resident(t)
	for range 10 {
		live = swap(live)
	}
	after := resident(t)
	t.Logf("resident before %d MiB, after 10 more filters %d MiB", before>>20, after>>20)
	if after > before+ClassicBits/8 {
		t.Errorf("resident grew from %d to %d MiB", before>>20, after>>20)
	}
	runtime.KeepAlive(live)
}

// BenchmarkHugePages reads random bytes of 32 MiB, each independent of the others
// or each from an address that depends on the one before, with pages of the usual
// size and in huge pages.
func BenchmarkHugePages(b *testing.B) {
	for _, huge := range []bool{false, true} {
		f := newClassic(b, ClassicBits)
		r := rand.New(rand.NewPCG(9, 10))
		for i := range f.bits {
			f.bits[i] = byte(r.Uint32())
		}
		name := "usual"
		if huge {
			useHugePages(f.bits)
			name = "huge"
		}
		b.Run("independent/"+name, func(b *testing.B) { readIndependent(b, f.bits) })
		b.Run("dependent/"+name, func(b *testing.B) { readDependent(b, f.bits) })
	}
}

// Both readers take the next address from a linear congruential generator.
const (
	factor    = 6364136223846793005
	increment = 1442695040888963407
)

// readIndependent reads a byte each turn. The processor can begin with the next
// before it has this one.
func readIndependent(b *testing.B, memory []byte) {
	x, sum := uint64(1), byte(0)
	for b.Loop() {
		x = x*factor + increment
		sum += memory[x>>33%uint64(len(memory))]
	}
	runtime.KeepAlive(sum)
}

// readDependent reads a byte each turn, and what was read goes into the next
// address.
func readDependent(b *testing.B, memory []byte) {
	x, sum := uint64(1), byte(0)
	for b.Loop() {
		x = x*factor + increment + uint64(sum)
		sum += memory[x>>33%uint64(len(memory))]
	}
	runtime.KeepAlive(sum)
}
