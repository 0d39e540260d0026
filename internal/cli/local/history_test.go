package local

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"spamgate/internal/admin"
	"spamgate/internal/cli"
	"spamgate/internal/config"
	"spamgate/internal/logging"
)

func TestHistoryError(t *testing.T) {
	old := fmt.Errorf("find: %w", &admin.Error{Status: 404, Code: "no_path", Text: "there is no /v1/decisions"})
	if err := HistoryError(old); !strings.Contains(err.Error(), "spamgate handover") {
		t.Error(err)
	}
	for _, err := range []error{nil, cli.ErrNo, &admin.Error{Status: 400, Code: "bad_request", Text: "x"}} {
		if got := HistoryError(err); !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestShownAddress(t *testing.T) {
	state := t.TempDir()
	hash, err := logging.NewRedactor(logging.AddressesHash, state) // makes the key
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ mode, address, want string }{
		{"full", "Ann@Example.net", "Ann@Example.net"},
		{"full", "<ann@example.net>", "ann@example.net"},
		{"full", "<>", "<>"},
		{"domain", "ann@example.net", "*@example.net"},
		{"domain", "<>", "<>"},
		{"hash", "ANN@example.net", hash.Address("ann@example.net")},
		{"hash", "<>", "<>"},
		{"full", "example.net", ""},
		{"full", "a b@example.net", ""},
		{"full", "", ""},
	} {
		config := &config.Config{State: config.State{Dir: state}, Log: config.Log{Addresses: c.mode}}
		if got, err := ShownAddress(config, c.address); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s, %s: %q, %v; want %q", c.mode, c.address, got, err, c.want)
		}
	}
}
