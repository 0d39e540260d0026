package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release that this tree becomes.
const version = "0.1.0"

// buildInfo is what a binary knows about itself.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, where it was built from a checkout
	Modified bool   `json:"modified,omitempty"` // the checkout had changes
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func readBuildInfo() buildInfo {
	b := buildInfo{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
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

func (b buildInfo) String() string {
	s := fmt.Sprintf("spamgate %s (%s %s/%s", b.Version, b.Go, b.OS, b.Arch)
	if len(b.Revision) >= 12 {
		s += ", revision " + b.Revision[:12]
	}
	if b.Modified {
		s += " with changes"
	}
	return s + ")"
}

func newVersionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
	}
	asJSON := cmd.Flags().Bool("json", false, "as a JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		info := readBuildInfo()
		if *asJSON {
			return json.NewEncoder(cmd.OutOrStdout()).Encode(info)
		}
		_, err := fmt.Fprintln(cmd.OutOrStdout(), info)
		return err
	}
	return cmd
}
