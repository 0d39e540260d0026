package hashlab

import (
	"bufio"
	"os"
	"runtime"
	"strings"
)

// newManifest returns the manifest of a run without the corpora, which are added
// when they are made.
func newManifest(o Options) Manifest {
	return Manifest{
		Version: o.Version, Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		CPU: cpuModel(), Flags: append([]string{}, o.Flags...),
		Seed: o.Seed, Full: o.Full, PublicKey: PublicKey(), Corpora: []CorpusInfo{},
	}
}

// cpuModel returns the processor's name from Linux, or the architecture.
func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		if name, value, _ := strings.Cut(s.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
