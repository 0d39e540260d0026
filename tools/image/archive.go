package main

import (
	"archive/tar"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// write writes the archive, whole or not at all: an OCI image layout, which podman, skopeo
// and containerd read, with the list of files for "docker load".
func write(to string, img v1.Image, name string, made time.Time) error {
	dir, err := os.MkdirTemp("", "spamgate-image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return err
	}
	err = path.AppendImage(img, layout.WithPlatform(*file.Platform()), layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          "docker.io/library/" + name,
		"org.opencontainers.image.ref.name": tag(file.Config.Labels["org.opencontainers.image.version"]),
	}))
	if err != nil {
		return err
	}
	if err := dockerManifest(filepath.Join(dir, "manifest.json"), img, name); err != nil {
		return err
	}
	partial := to + ".part"
	defer os.Remove(partial)
	if err := pack(partial, dir, made); err != nil {
		return err
	}
	return os.Rename(partial, to)
}

// dockerManifest writes what "docker load" looks for: which files of the layout are the
// configuration and the layers.
func dockerManifest(to string, img v1.Image, name string) error {
	blob := func(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }
	config, err := img.ConfigName()
	if err != nil {
		return err
	}
	descriptor := tarball.Descriptor{Config: blob(config), RepoTags: []string{name}}
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	for _, l := range layers {
		h, err := l.Digest()
		if err != nil {
			return err
		}
		descriptor.Layers = append(descriptor.Layers, blob(h))
	}
	text, err := json.Marshal(tarball.Manifest{descriptor})
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

// pack writes the files of a directory, sorted by name, to an archive.
func pack(to, dir string, made time.Time) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	tree := os.DirFS(dir)
	err = fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || path == ".":
			return err
		case d.IsDir():
			return addFile(w, entry{path: path + "/", mode: 0o755}, made)
		}
		content, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		return addFile(w, entry{path: path, mode: 0o644, content: content}, made)
	})
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}
