package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// tools are the paths of the programs that bench runs, by name.
type tools map[string]string

// findTools searches PATH and /usr/sbin, where Debian installs some.
func findTools() (tools, error) {
	t := tools{}
	var missing []string
	for _, tool := range []struct{ name, comesWith string }{
		{"smtp-source", "apt-get install postfix"},
		{"smtp-sink", "apt-get install postfix"},
		{"haproxy", "apt-get install haproxy"},
		{"postfix", "apt-get install postfix postfix-lmdb"},
		{"postmap", "apt-get install postfix postfix-lmdb"},
		{"go", "https://go.dev/dl/"},
	} {
		path, err := exec.LookPath(tool.name)
		if err != nil {
			path, err = exec.LookPath(filepath.Join("/usr/sbin", tool.name))
		}
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s (%s)", tool.name, tool.comesWith))
		}
		t[tool.name] = path
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("not installed: %s", strings.Join(missing, ", "))
	}
	return t, nil
}

// machine describes the machine and the software that were measured.
type machine struct {
	CPU      string `json:"cpu"`
	Cores    int    `json:"cores"`
	Kernel   string `json:"kernel"`
	Load     string `json:"load_before"` // averages over 1, 5 and 15 minutes
	Go       string `json:"go"`
	Postfix  string `json:"postfix"`
	HAProxy  string `json:"haproxy"`
	Checkout string `json:"checkout"`
}

func describeMachine(ctx context.Context, t tools, root string) machine {
	return machine{
		CPU:      cpuModel(),
		Cores:    runtime.NumCPU(),
		Kernel:   runtime.GOOS + " " + firstLine(os.ReadFile("/proc/sys/kernel/osrelease")),
		Load:     loadAverages(),
		Go:       runtime.Version(),
		Postfix:  output(ctx, root, "postconf", "-d", "-h", "mail_version"),
		HAProxy:  haproxyVersion(output(ctx, root, t["haproxy"], "-v")),
		Checkout: output(ctx, root, "git", "describe", "--always", "--dirty"),
	}
}

// haproxyVersion returns the version in "HAProxy version 2.6.12 2026/10/17 - …".
func haproxyVersion(line string) string {
	version, _, _ := strings.Cut(strings.TrimPrefix(line, "HAProxy version "), " ")
	return version
}

// cpuModel returns the CPU's name from Linux, or the architecture.
func cpuModel() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func loadAverages() string {
	fields := strings.Fields(firstLine(os.ReadFile("/proc/loadavg")))
	if len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}

// output returns the first line that a command prints.
func output(ctx context.Context, dir, name string, args ...string) string {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	return firstLine(cmd.Output())
}

func firstLine(text []byte, err error) string {
	line, _, _ := strings.Cut(string(text), "\n")
	if err != nil || line == "" {
		return "unknown"
	}
	return strings.TrimSpace(line)
}
