package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommitted asks a gate that has written some rows, and one that has dropped one.
func TestCommitted(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "state", "admin.sock"))
	if err != nil {
		t.Fatal(err)
	}
	written, dropped := 103, 2
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		written++ // it writes while it is asked
		fmt.Fprintf(w, `{"decisions":{"rows":%d,"dropped":%d}}`, written, dropped)
	})}
	go server.Serve(l)
	defer server.Close()
	gate := target{name: gateHistory, server: &process{cmd: &exec.Cmd{Dir: dir}}}
	before, err := gate.rows(t.Context())
	if err != nil || before != (rows{104, 2}) {
		t.Fatal(before, err)
	}
	if err := gate.committed(t.Context(), before, 3); err != nil || written != 107 {
		t.Errorf("%d rows: %v", written, err)
	}
	dropped++
	if err := gate.committed(t.Context(), before, 9); err == nil || !strings.Contains(err.Error(), "dropped 1 of 9 rows") {
		t.Errorf("a dropped row: %v", err)
	}
}
