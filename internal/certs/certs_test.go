package certs

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	oldName = "old.example.com"
	newName = "new.example.com"
)

var nextYear = noon.AddDate(1, 0, 0)

// waysToNotice runs a test with events only, and with polling only.
func waysToNotice(t *testing.T, test func(*testing.T, Options)) {
	t.Run("events", func(t *testing.T) { test(t, Options{PollInterval: time.Hour}) })
	t.Run("polling", func(t *testing.T) { test(t, Options{PollInterval: time.Millisecond, deaf: true}) })
}

func TestReload(t *testing.T) {
	waysToNotice(t, func(t *testing.T, o Options) {
		var log logBuffer
		o.Logger = log.logger()
		f := newFiles(t)
		f.write(t, newPair(t, oldName, nextYear))
		r, looked := f.open(t, o)
		if got := r.Certificates()[0].Names; !slices.Equal(got, []string{oldName, "192.0.2.1"}) || !r.Certificates()[0].NotAfter.Equal(nextYear) {
			t.Errorf("%v, %v", got, r.Certificates()[0].NotAfter)
		}
		f.write(t, newPair(t, newName, nextYear.Add(time.Hour)))
		await(t, r, looked, newName)
		if !r.Certificates()[0].NotAfter.Equal(nextYear.Add(time.Hour)) {
			t.Error(r.Certificates()[0].NotAfter)
		}
		if err := r.Close(); err != nil { // what is in force may not be in the log yet
			t.Error(err)
		}
		if lines := log.lines("certificate loaded"); len(lines) != 2 || !strings.Contains(lines[1], newName+",192.0.2.1 not_after=2031-01-01T13:00:00Z") {
			t.Errorf("%q", lines)
		}
	})
}

// As certbot does: a link in one directory changes to a new file in another.
func TestLinkSwapped(t *testing.T) {
	waysToNotice(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		archive, live := filepath.Join(dir, "archive"), filepath.Join(dir, "live")
		for _, d := range []string{archive, live} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		f := files{filepath.Join(live, "fullchain.pem"), filepath.Join(live, "privkey.pem")}
		link := func(n int, name string) {
			t.Helper()
			p := newPair(t, name, nextYear)
			for path, text := range map[string]string{f.cert: p.cert, f.key: p.key} {
				target := fmt.Sprintf("%d-%s", n, filepath.Base(path))
				write(t, filepath.Join(archive, target), text)
				if err := os.Symlink(filepath.Join("..", "archive", target), path+".new"); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(path+".new", path); err != nil {
					t.Fatal(err)
				}
			}
		}
		link(1, oldName)
		r, looked := f.open(t, o)
		link(2, newName)
		await(t, r, looked, newName)

		// The file itself, to which the link leads.
		p := newPair(t, oldName, nextYear)
		write(t, filepath.Join(archive, "2-fullchain.pem"), p.cert)
		write(t, filepath.Join(archive, "2-privkey.pem"), p.key)
		await(t, r, looked, oldName)
	})
}

// As Kubernetes does: the directory is a link that is replaced.
func TestDirectorySwapped(t *testing.T) {
	waysToNotice(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		version := func(n int, name string) {
			t.Helper()
			d := fmt.Sprintf("..%d", n)
			if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
				t.Fatal(err)
			}
			inside := files{filepath.Join(dir, d, "tls.crt"), filepath.Join(dir, d, "tls.key")}
			inside.write(t, newPair(t, name, nextYear))
			if err := os.Symlink(d, filepath.Join(dir, "..new")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
				t.Fatal(err)
			}
		}
		version(1, oldName)
		f := files{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
		for _, path := range []string{f.cert, f.key} {
			if err := os.Symlink(filepath.Join("..data", filepath.Base(path)), path); err != nil {
				t.Fatal(err)
			}
		}
		r, looked := f.open(t, o)
		for n, name := range []string{newName, oldName, newName} {
			version(n+2, name)
			await(t, r, looked, name)
			if err := os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..%d", n+1))); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Invalid files do not replace the certificate, and are logged once; valid ones do
// replace it later.
func TestLastGood(t *testing.T) {
	old, fresh := newPair(t, oldName, nextYear), newPair(t, newName, nextYear)
	cases := []struct {
		name  string
		spoil func(*testing.T, files)
		want  string
	}{
		{"new certificate, old key", func(t *testing.T, f files) { replace(t, f.cert, fresh.cert) }, "does not match"},
		{"new key, old certificate", func(t *testing.T, f files) { replace(t, f.key, fresh.key) }, "does not match"},
		{"half a certificate", func(t *testing.T, f files) { replace(t, f.cert, fresh.cert[:len(fresh.cert)/2]) }, "has no certificate"},
		{"half a key", func(t *testing.T, f files) { replace(t, f.key, fresh.key[:len(fresh.key)/2]) }, "has no private key"},
		{"an empty file", func(t *testing.T, f files) { replace(t, f.cert, "") }, "has no certificate"},
		{"no certificate file", func(t *testing.T, f files) { os.Remove(f.cert) }, "no such file"},
		{"no key file", func(t *testing.T, f files) { os.Remove(f.key) }, "no such file"},
		{"no directory", func(t *testing.T, f files) { os.Rename(filepath.Dir(f.cert), filepath.Dir(f.cert)+".gone") }, "no such file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var log logBuffer
			f := newFiles(t)
			f.write(t, old)
			r, looked := f.open(t, Options{PollInterval: time.Millisecond, Logger: log.logger()})
			c.spoil(t, f)
			for range 4 { // one look may have begun before, more say no more
				<-looked
			}
			if lines := log.lines("WARN"); len(lines) != 1 || !strings.Contains(lines[0], c.want) {
				t.Errorf("got %q, want one line with %q", lines, c.want)
			}
			if name := r.Certificates()[0].Names[0]; name != oldName {
				t.Errorf("a certificate for %s", name)
			}
			if err := os.MkdirAll(filepath.Dir(f.cert), 0o755); err != nil {
				t.Fatal(err)
			}
			f.write(t, fresh)
			await(t, r, looked, newName)
		})
	}
}

// A directory that was replaced is watched again.
func TestDirectoryReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	f := files{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f.write(t, newPair(t, oldName, nextYear))
	r, looked := f.open(t, Options{PollInterval: time.Hour})
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f.write(t, newPair(t, newName, nextYear))
	await(t, r, looked, newName)
	f.write(t, newPair(t, oldName, nextYear)) // noticed by the watch of the new directory
	await(t, r, looked, oldName)
}

func TestClose(t *testing.T) {
	f := newFiles(t)
	f.write(t, newPair(t, oldName, nextYear))
	for range 10 {
		r, err := Open([]Files{{f.cert, f.key}}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if c, err := r.GetCertificate(nil); c == nil || err != nil {
			t.Error(c, err)
		}
		if _, err := Open([]Files{{f.cert, f.key + ".missing"}}, Options{}); err == nil {
			t.Error("opened without a key")
		}
	}
	waitGone(t)
}

// waitGone waits until all goroutines of Reloaders and watchers have ended.
func waitGone(t *testing.T) {
	t.Helper()
	deadline := time.After(patient)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		left := watching()
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
		}
	}
}

// watching returns the stacks of the goroutines that watch files.
func watching() []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var stacks []string
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(stack, "certs.(*Reloader).run") || strings.Contains(stack, "fsnotify.") {
			stacks = append(stacks, stack)
		}
	}
	return stacks
}

// A handshake gets the current certificate.
func TestHandshake(t *testing.T) {
	f := newFiles(t)
	f.write(t, newPair(t, oldName, nextYear))
	pool, err := LoadPool(f.cert)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := f.open(t, Options{})
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	failed := make(chan error, 1)
	go func() {
		server := tls.Server(there, &tls.Config{GetCertificate: r.GetCertificate})
		_, err := server.Write([]byte("220"))
		failed <- err
	}()
	client := tls.Client(here, &tls.Config{RootCAs: pool, ServerName: oldName, Time: atNoon})
	if _, err := io.ReadFull(client, make([]byte, 3)); err != nil {
		t.Error(err)
	}
	if err := <-failed; err != nil {
		t.Error(err)
	}
}
