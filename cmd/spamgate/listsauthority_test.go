package main

import (
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// TestListsFetchAuthority fetches from a server with an authority of its own.
func TestListsFetchAuthority(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "spam.example\n")
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	s.StartTLS()
	t.Cleanup(s.Close)
	url := "url = \"" + s.URL + "\"\n"

	fetchConfig(t, "own", url)
	_, stderr := command(t, 2, "lists", "fetch")
	wantText(t, stderr, "set tls_ca to a PEM file with its certificate")

	fetchConfig(t, "own", url+"tls_ca = \"ca.pem\"\n")
	_, stderr = command(t, 2, "config", "check")
	wantText(t, stderr, "config.toml:6:1: list.tls_ca: ", "ca.pem: no such file or directory; correct the path")
	_, stderr = command(t, 2, "lists", "fetch")
	wantText(t, stderr, `list "own": tls_ca: `)

	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile("ca.pem", authority, 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _ := command(t, 0, "lists", "fetch")
	wantText(t, stdout, "own: fetched, 13 bytes")
	command(t, 0, "config", "check")
}
