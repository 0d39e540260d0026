package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"spamgate/internal/config"
	"spamgate/internal/managed"
	"spamgate/internal/unixsocket"
)

// editClients returns a client of a server that edits the lists of a new state directory, and one that
// edits them itself.
func editClients(t *testing.T) (served, direct *Client) {
	t.Helper()
	dir := t.TempDir()
	c, err := config.Parse(filepath.Join(dir, "config.toml"), []byte("[[list]]\nname = \"blocked\"\nmanaged = true\n[[list]]\nname = \"file\"\npath = \"f.txt\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := managed.Make(c); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	editor := managed.New(func() *config.Config { return c }, nil)
	s, err := Listen(Options{Socket: unixsocket.Socket{Path: socket, Mode: 0o600}, Gate: &fakeGate{}, Editor: editor})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return dial(t, socket), Direct(editor)
}

// TestEdits edits a managed list through the socket, and without a gate. The author is the user that
// the kernel reports.
func TestEdits(t *testing.T) {
	t.Setenv("SUDO_USER", "alice")
	served, _ := editClients(t)
	_, direct := editClients(t)
	t.Run("served", func(t *testing.T) { testEdits(t, served) })
	t.Run("direct", func(t *testing.T) { testEdits(t, direct) })
}

func testEdits(t *testing.T, c *Client) {
	ctx := context.Background()
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	added, err := Call(ctx, c, OpAdd, AddRequest{Entries: []managed.NewEntry{{Name: managed.Name{Entry: "spam.example"}, Reason: "bots", Until: until}, {Name: managed.Name{Entry: "b.example"}}}, Options: managed.Options{Why: "asked"}}, "blocked")
	if err != nil || len(added.Entries) != 2 || added.Entries[0].Reason != "bots" || added.Entries[0].Until != until.UTC().Format(time.RFC3339) {
		t.Fatalf("%+v, %v", added, err)
	}
	if r, err := Call(ctx, c, OpRemove, RemoveRequest{Entries: []managed.Name{{Entry: "b.example"}}, Options: managed.Options{Command: "move"}}, "blocked"); err != nil || r.Entries[0].What != managed.Removed {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := Call(ctx, c, OpUndo, UndoRequest{Change: added.Entries[0].Change, Options: managed.Options{DryRun: true}}); err != nil || !r.DryRun || !r.Changed {
		t.Errorf("%+v, %v", r, err)
	}
	content := func() string {
		t.Helper()
		var b bytes.Buffer
		if err := c.Content(ctx, "blocked", &b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got := content(); !strings.HasSuffix(got, "\nspam.example  # until="+until.UTC().Format(time.RFC3339)+" bots\n") {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("# a long comment\n", 20_000) + "long.example\n" // more than other requests may have
	if r, err := Call(ctx, c, OpReplace, ReplaceRequest{Replacement: managed.Replacement{Command: "import", What: "added a file", Content: strings.NewReader(long)}, Options: managed.Options{Why: "x y&z"}}, "blocked"); err != nil || !r.Changed || content() != long {
		t.Errorf("%+v, %v", r, err)
	}
	page, err := Call(ctx, c, OpChanges, ChangesRequest{managed.ChangesQuery{List: "blocked", Since: time.Now().Add(-time.Minute), By: "alice", Limit: 100}})
	var got []string
	for _, change := range page.Changes {
		got = append(got, fmt.Sprint(change.By, " ", change.Through, " ", change.Command, " ", change.What, " ", change.Why))
	}
	want := []string{
		"alice command import removed spam.example x y&z", "alice command import added long.example x y&z", "alice command import added a file x y&z",
		"alice command move removed b.example ", "alice command add added b.example asked", "alice command add added spam.example until " + until.UTC().Format(time.RFC3339) + " asked",
	}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if versions, err := Call(ctx, c, OpVersions, None{}, "blocked"); err != nil || len(versions) != 0 {
		t.Errorf("%+v, %v", versions, err)
	}
}

// TestEditErrors: the errors of an edit are told apart at the other end of the socket.
func TestEditErrors(t *testing.T) {
	c, _ := editClients(t)
	ctx := context.Background()
	add := func(list, entry string) func() error {
		return func() error {
			_, err := Call(ctx, c, OpAdd, AddRequest{Entries: []managed.NewEntry{{Name: managed.Name{Entry: entry}}}}, list)
			return err
		}
	}
	for name, single := range map[string]struct {
		do     func() error
		want   error
		status int
	}{
		"no list":     {add("a/../b", "x.example"), managed.ErrNoList, 404},
		"not managed": {add("file", "x.example"), managed.ErrNotManaged, 409},
		"no entry":    {add("blocked", "com"), managed.ErrEntry, 400},
		"protected":   {add("blocked", "gmail.com"), managed.ErrProtected, 409},
		"not listed": {func() error {
			_, err := Call(ctx, c, OpRemove, RemoveRequest{Entries: []managed.Name{{Entry: "a.example"}}}, "blocked")
			return err
		}, managed.ErrNotListed, 404},
		"no change":  {func() error { _, err := Call(ctx, c, OpUndo, UndoRequest{Change: "abcdefghijklmnop"}); return err }, managed.ErrNoChange, 404},
		"no version": {func() error { _, err := Call(ctx, c, OpRollback, RollbackRequest{Version: "x"}, "blocked"); return err }, managed.ErrNoVersion, 404},
		"conflict": {func() error {
			_, err := Call(ctx, c, OpReplace, ReplaceRequest{Replacement: managed.Replacement{Command: "edit", Base: "x", Content: strings.NewReader("a.example\n")}}, "blocked")
			return err
		}, managed.ErrConflict, 409},
		"no command": {func() error {
			_, err := Call(ctx, c, OpReplace, ReplaceRequest{Replacement: managed.Replacement{Content: strings.NewReader("")}}, "blocked")
			return err
		}, ErrRequest, 400},
		"no content": {func() error { return c.Content(ctx, "file", &bytes.Buffer{}) }, managed.ErrNotManaged, 409},
		"a wrong page": {func() error {
			_, err := Call(ctx, c, OpChanges, ChangesRequest{managed.ChangesQuery{Limit: maxChanges + 1}})
			return err
		}, ErrRequest, 400},
	} {
		t.Run(name, func(t *testing.T) {
			err := single.do()
			failure := new(Error)
			if !errors.Is(err, single.want) || !errors.As(err, &failure) || failure.Status != single.status {
				t.Errorf("%v (%+v), want %v and %d", err, failure, single.want, single.status)
			}
		})
	}
	large := make([]managed.NewEntry, 1)
	large[0].Reason = strings.Repeat("x", maxEntries)
	failure := new(Error)
	if _, err := Call(ctx, c, OpAdd, AddRequest{Entries: large}, "blocked"); !errors.As(err, &failure) || failure.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large request: %v", err)
	}
}
