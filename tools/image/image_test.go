package main

import (
	"bytes"
	"crypto/x509"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"spamgate/internal/e2e/harness"
)

const version = "0.9.0~test+1"

// dir is a directory for archives that several tests read.
var dir string

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "spamgate-images"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// archives returns archives that are made once.
func archives(t *testing.T) map[string]string {
	t.Helper()
	return buildIn(t, dir)
}

// buildIn runs packaging/image, unless it did so in this directory, and returns the archive
// for each architecture. All architectures take half a minute more than one, so that is
// for SPAMGATE_E2E_FULL=1.
func buildIn(t *testing.T, dir string, env ...string) map[string]string {
	t.Helper()
	arches := []string{"amd64", "arm64"}
	if os.Getenv("SPAMGATE_E2E_FULL") == "" {
		arches = slices.DeleteFunc(arches, func(a string) bool { return a != runtime.GOARCH })
	}
	if len(arches) == 0 {
		t.Skipf("there is no image for %s", runtime.GOARCH)
	}
	all := map[string]string{}
	for _, arch := range arches {
		all[arch] = filepath.Join(dir, "spamgate-"+version+"-linux-"+arch+".oci.tar")
		if _, err := os.Stat(all[arch]); err == nil {
			continue
		}
		cmd := exec.Command("../../packaging/image", dir, "--version", version, "--arch", arch)
		cmd.Env = append(os.Environ(), append([]string{"SOURCE_DATE_EPOCH=1700000000"}, env...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	return all
}

// unpack runs tar.
func unpack(t *testing.T, dir string, from io.Reader) {
	t.Helper()
	cmd := exec.Command("tar", "-x", "-p", "--numeric-owner", "-C", dir)
	cmd.Stdin = from
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
}

// open reads the archive in its two forms, checks all digests, and returns the image.
func open(t *testing.T, archive string) v1.Image {
	t.Helper()
	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	unpack(t, dir, bytes.NewReader(text))
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Fatalf("the OCI layout: %v", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the index has %v, %v; want one image", manifest, err)
	}
	img, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	docker, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatalf("for docker load: %v", err)
	}
	if err := validate.Image(docker); err != nil {
		t.Fatalf("for docker load: %v", err)
	}
	a, errA := img.ConfigName()
	b, errB := docker.ConfigName()
	if a != b || errA != nil || errB != nil {
		t.Errorf("the OCI layout has the configuration %v (%v), docker load reads %v (%v)", a, errA, b, errB)
	}
	return img
}

// TestSameBytes builds twice, the second time in another time zone and language.
func TestSameBytes(t *testing.T) {
	first := archives(t)
	second := buildIn(t, t.TempDir(), "TZ=Asia/Kolkata", "LC_ALL=C.UTF-8", "GOFLAGS=-p=1")
	for arch, path := range first {
		a, errA := os.ReadFile(path)
		b, errB := os.ReadFile(second[arch])
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: two builds differ, %v, %v", arch, errA, errB)
		}
	}
}

// TestContents reads the settings, the files' owners and the certificates.
func TestContents(t *testing.T) {
	for arch, path := range archives(t) {
		img := open(t, path)
		file, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if file.OS != "linux" || file.Architecture != arch || !file.Created.Equal(time.Unix(1_700_000_000, 0)) {
			t.Errorf("%s: the image is for %s/%s, of %v", arch, file.OS, file.Architecture, file.Created)
		}
		if file.Config.User != "10025:10025" || file.Config.Healthcheck == nil {
			t.Errorf("%s: the user is %q, the health check %v", arch, file.Config.User, file.Config.Healthcheck)
		}
		root := t.TempDir()
		flat := mutate.Extract(img)
		unpack(t, root, flat)
		flat.Close()
		roots, err := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt"))
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(roots) || bytes.Count(roots, []byte("BEGIN CERTIFICATE")) < 100 {
			t.Errorf("%s: the certificate authorities are %d bytes", arch, len(roots))
		}
		for name, mode := range map[string]os.FileMode{
			"usr/bin/spamgate": 0o755, "usr/bin/spamgate-fleetd": 0o755, "etc/spamgate": 0o755 | os.ModeDir, "var/lib/spamgate": 0o700 | os.ModeDir, "tmp": 0o777 | os.ModeDir | os.ModeSticky,
		} {
			info, err := os.Stat(filepath.Join(root, name))
			if err != nil || info.Mode() != mode {
				t.Errorf("%s: %s: %v, %v; want mode %v", arch, name, info, err, mode)
			}
		}
	}
}

// TestBadFlags has packaging/image refuse what it cannot do.
func TestBadFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "usage: packaging/image DIR"},
		{[]string{"DIR", "--arch", "mips"}, "--arch mips: use amd64 or arm64"},
		{[]string{"DIR", "--version", "new"}, "--version new: a version begins with a digit"},
		{[]string{"DIR", "--version", "1/2"}, "--version 1/2: use digits"},
		{[]string{"DIR", "--version"}, "usage: packaging/image DIR"},
	} {
		for i, a := range c.args {
			if a == "DIR" {
				c.args[i] = t.TempDir()
			}
		}
		_, stderr, code := harness.Run(t, exec.Command("../../packaging/image", c.args...))
		if code != 2 || !bytes.Contains([]byte(stderr), []byte(c.want)) {
			t.Errorf("%q: exit code %d, %q; want 2 and %q", c.args, code, stderr, c.want)
		}
	}
}
