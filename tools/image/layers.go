package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// An entry is a file or, without content, a directory of a layer.
type entry struct {
	path    string
	mode    int64
	owner   int
	content []byte
}

// baseLayer returns the layer with everything but the programs. The certificates are
// Mozilla's, as the module golang.org/x/crypto/x509roots has them. Time zones are in the
// program (-tags timetzdata).
func baseLayer(made time.Time) (v1.Layer, error) {
	passwd := fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nspamgate:x:%d:%[1]d:spamgate:%s:/sbin/nologin\n", userID, stateDir)
	group := fmt.Sprintf("root:x:0:\nspamgate:x:%d:\n", userID)
	return layer(made,
		entry{path: "etc/", mode: 0o755},
		entry{path: "etc/group", mode: 0o644, content: []byte(group)},
		entry{path: "etc/passwd", mode: 0o644, content: []byte(passwd)},
		entry{path: configDir[1:] + "/", mode: 0o755},
		entry{path: "etc/ssl/", mode: 0o755},
		entry{path: "etc/ssl/certs/", mode: 0o755},
		entry{path: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, content: certificates()},
		entry{path: "tmp/", mode: 0o1777},
		entry{path: "usr/", mode: 0o755},
		entry{path: "usr/bin/", mode: 0o755},
		entry{path: "var/", mode: 0o755},
		entry{path: "var/lib/", mode: 0o755},
		entry{path: stateDir[1:] + "/", mode: 0o700, owner: userID},
	)
}

// certificates returns the roots in PEM. It omits roots that Mozilla trusts in part, such
// as until a date: a file cannot say so.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return b.Bytes()
}

func programLayer(binary, server string, made time.Time) (v1.Layer, error) {
	gate, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	broker, err := os.ReadFile(server)
	if err != nil {
		return nil, err
	}
	return layer(made, entry{path: program[1:], mode: 0o755, content: gate}, entry{path: fleetd[1:], mode: 0o755, content: broker})
}

// layer returns a layer with the entries, all of one time.
func layer(made time.Time, entries ...entry) (v1.Layer, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if err := addFile(w, e, made); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// addFile writes an entry to an archive. A directory's path ends with "/".
func addFile(w *tar.Writer, e entry, made time.Time) error {
	h := &tar.Header{Name: e.path, Mode: e.mode, Uid: e.owner, Gid: e.owner, ModTime: made,
		Size: int64(len(e.content)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if e.path[len(e.path)-1] == '/' {
		h.Typeflag = tar.TypeDir
	}
	if err := w.WriteHeader(h); err != nil {
		return fmt.Errorf("%s: %w", e.path, err)
	}
	_, err := w.Write(e.content)
	return err
}
