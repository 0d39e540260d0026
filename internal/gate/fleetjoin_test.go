package gate

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/internal/admin"
	"spamgate/internal/config"
	"spamgate/internal/fetch"
	"spamgate/internal/fleet"
	"spamgate/internal/fleet/fleettest"
	"spamgate/internal/managed"
)

// TestDecideLists edits the file of a shared list by hand, and decides about it in each way.
func TestDecideLists(t *testing.T) {
	const fleets = "one.example\ntwo.example\n"
	for _, c := range []struct {
		name    string
		own     string
		request admin.FleetJoinRequest
		want    string // what is said of the list; "": it is equal
		after   string // what the file has then
	}{
		{"equal", fleets, admin.FleetJoinRequest{}, "", fleets},
		{"no decision", "one.example\nthree.example\n", admin.FleetJoinRequest{}, fleet.ErrDiffers.Error(), "one.example\nthree.example\n"},
		{"no decision about a named list", "one.example\n", admin.FleetJoinRequest{Lists: []string{"blocked"}}, fleet.ErrDiffers.Error(), "one.example\n"},
		{"take", "one.example\nthree.example\n", admin.FleetJoinRequest{Take: true}, admin.FleetTook, fleets},
		{"merge", "one.example\nthree.example\n", admin.FleetJoinRequest{Merge: true}, admin.FleetMerged + " 1", fleets + "three.example\n"},
		{"merge what has nothing more", "one.example\n", admin.FleetJoinRequest{Merge: true}, admin.FleetMerged + " 0", fleets},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, dir := fleettest.Start(t, nil), t.TempDir()
			file := filepath.Join(dir, "managed", "blocked.txt")
			write := func(text string) {
				t.Helper()
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			write(fleets)
			m, err := fleet.Open(fleet.Options{
				Name: "mx1", Servers: []string{s.URL()}, StateDir: dir,
				Lists: []fleet.List{{Name: "blocked", Kind: fleet.Managed, Path: file, MaxBytes: 1 << 20}},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.Close)
			if err := m.CatchUp(t.Context(), "blocked"); err != nil {
				t.Fatal(err)
			}
			write(c.own)
			if err := os.Chtimes(file, time.Time{}, time.Now().Add(time.Minute)); err != nil { // a clock may be coarse
				t.Fatal(err)
			}
			message := ""
			for _, l := range decideLists(t.Context(), m, c.request, "root") {
				if message = l.Done + l.Error; l.Done == admin.FleetMerged {
					message += " " + string(rune('0'+l.Added))
				}
			}
			if !strings.HasPrefix(message, c.want) || (message == "") != (c.want == "") {
				t.Errorf("it says %q", message)
			}
			if after, err := os.ReadFile(file); err != nil || string(after) != c.after {
				t.Errorf("the file has %q, %v", after, err)
			}
		})
	}
}

// TestJoinAlone joins while no server can be reached: the gate belongs to the fleet nevertheless, and
// the error says so.
func TestJoinAlone(t *testing.T) {
	c := &config.Config{State: config.State{Dir: t.TempDir()}, Fleet: config.Fleet{Name: "mx1", Servers: config.Addresses{"nats://127.0.0.1:1"}}}
	f := newFleetPart(func() *config.Config { return c }, slog.New(slog.DiscardHandler))
	f.lists = &lists{fetcher: fetch.New(fetch.Options{Logger: f.log})}
	t.Cleanup(f.fetcher.Close)
	t.Cleanup(func() { _ = f.close() })
	if err := f.leave(c); err != nil {
		t.Fatal(err)
	}
	g := &adminHandler{fleet: f}
	g.current.Store(&activeConfig{config: c})
	for _, want := range []string{
		"; this gate is in the fleet again, and connects when its servers can be reached; spamgate fleet leave takes it out",
		"; this gate stays in the fleet, and connects when its servers can be reached; spamgate fleet leave takes it out",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := g.FleetJoin(ctx, managed.By{}, admin.FleetJoinRequest{})
		cancel()
		if !errors.Is(err, fleet.ErrOffline) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v", err)
		}
		if f.hasLeft() {
			t.Error("it has left still")
		}
	}
}
