// Package version says which spamgate this is.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Number is the release that this tree becomes. packaging/build may set another.
var Number = "0.1.0"

// Info is what a binary knows about itself.
type Info struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, where it was built from a checkout
	Modified bool   `json:"modified,omitempty"` // the checkout had changes
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func Read() Info {
	b := Info{Version: Number, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Revision = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}

func (b Info) String() string {
	s := fmt.Sprintf("spamgate %s (%s %s/%s", b.Version, b.Go, b.OS, b.Arch)
	if len(b.Revision) >= 12 {
		s += ", revision " + b.Revision[:12]
	}
	if b.Modified {
		s += " with changes"
	}
	return s + ")"
}
