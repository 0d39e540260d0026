// Command image writes a container image of spamgate as a tar archive, without a container
// engine: both an OCI image layout and what "docker load" reads. packaging/image runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// userID is the number of the user and the group that the gate runs as. Kubernetes only
// knows that a number is not root.
const userID = 10025

const (
	program   = "/usr/bin/spamgate"
	fleetd    = "/usr/bin/spamgate-fleetd"
	configDir = "/etc/spamgate"
	stateDir  = "/var/lib/spamgate"
	config    = configDir + "/config.toml"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(2)
	}
}

func run() error {
	binary := flag.String("program", "", "the program, built for the architecture")
	server := flag.String("fleetd", "", "spamgate-fleetd, built for the architecture")
	arch := flag.String("arch", "", "the architecture, as Go calls it")
	version := flag.String("version", "", "the version")
	date := flag.String("date", "", "the time of all files, in seconds since 1970")
	out := flag.String("out", "", "the archive to write")
	flag.Parse()
	if *binary == "" || *server == "" || *arch == "" || *version == "" || *out == "" || flag.NArg() > 0 {
		return errors.New("program, fleetd, arch, version, date and out are needed; packaging/image sets them")
	}
	seconds, err := strconv.ParseInt(*date, 10, 64)
	if err != nil {
		return fmt.Errorf("-date %q is not a number of seconds", *date)
	}
	made := time.Unix(seconds, 0).UTC()
	img, err := build(*binary, *server, *arch, *version, made)
	if err != nil {
		return err
	}
	return write(*out, img, "spamgate:"+tag(*version), made)
}

// tag returns the version as a tag, which cannot have a "+" or "~".
func tag(version string) string { return strings.NewReplacer("+", "-", "~", "-").Replace(version) }

// build makes the image: a layer with the base files, which seldom changes, and one with
// the programs.
func build(binary, server, arch, version string, made time.Time) (v1.Image, error) {
	base, err := baseLayer(made)
	if err != nil {
		return nil, err
	}
	code, err := programLayer(binary, server, made)
	if err != nil {
		return nil, err
	}
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	history := func(what string) v1.History {
		return v1.History{Created: v1.Time{Time: made}, CreatedBy: "packaging/image", Comment: what}
	}
	img, err = mutate.Append(img,
		mutate.Addendum{Layer: base, History: history("user, certificates, directories")},
		mutate.Addendum{Layer: code, History: history("spamgate " + version)})
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Created, file.OS, file.Architecture = v1.Time{Time: made}, "linux", arch
	if arch == "arm64" {
		file.Variant = "v8"
	}
	file.Config = settings(version)
	return mutate.ConfigFile(img, file)
}

// settings returns what a container of the image does by default.
func settings(version string) v1.Config {
	user := strconv.Itoa(userID)
	return v1.Config{
		User:         user + ":" + user,
		Entrypoint:   []string{program},
		Cmd:          []string{"serve", "--config", config},
		Env:          []string{"PATH=/usr/bin"},
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{"2525/tcp": {}},
		Volumes:      map[string]struct{}{stateDir: {}},
		StopSignal:   "SIGTERM",
		Healthcheck: &v1.HealthConfig{
			Test:        []string{"CMD", program, "health", "--mail", "--config", config},
			Interval:    30 * time.Second,
			Timeout:     15 * time.Second, // health itself waits 10 s
			StartPeriod: 5 * time.Minute,  // a start may have to fetch lists
			Retries:     3,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "spamgate",
			"org.opencontainers.image.description": "An SMTP proxy that refuses listed senders",
			"org.opencontainers.image.version":     version,
		},
	}
}
