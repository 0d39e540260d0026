package nexthop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/smtpfilter/wire"
)

// takeFile reads and removes the file that a reply names, and checks that it is the only
// one.
func takeFile(t *testing.T, dir string, reply wire.Reply) []byte {
	t.Helper()
	name, ok := strings.CutPrefix(reply.String(), "250 2.0.0 Delivered as ")
	if !ok {
		t.Fatalf("reply %q", reply)
	}
	path := filepath.Join(dir, "new", name)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(path)
	if left := leftFiles(t, dir); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
	return text
}

func leftFiles(t *testing.T, dir string) (left []string) {
	t.Helper()
	for _, sub := range []string{"tmp", "new", "cur"} {
		files, err := filepath.Glob(filepath.Join(dir, sub, "*"))
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, files...)
	}
	return left
}

func TestMaildirReturnPath(t *testing.T) {
	dir := t.TempDir()
	box, err := NewMaildir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{
		"":                  "Return-Path: <>\r\nx\r\n",
		`"a b"@example.com`: "Return-Path: <\"a b\"@example.com>\r\nx\r\n",
	} {
		reply, err := deliver(box, from, []byte("x\r\n"), whole)
		if err != nil {
			t.Fatal(err)
		}
		if got := takeFile(t, dir, reply); string(got) != want {
			t.Errorf("%q", got)
		}
	}
	if _, err := deliver(box, "a\r\nb", nil, whole); err == nil {
		t.Error("control bytes in the reverse-path: no error")
	}
}

func TestMaildirAbort(t *testing.T) {
	dir := t.TempDir()
	box, err := NewMaildir(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errStop)
	for name, end := range map[string]func(Transaction, Message) error{
		"transaction": func(tx Transaction, _ Message) error { tx.Abort(); return ErrAborted },
		"message":     func(_ Transaction, m Message) error { m.Abort(); m.Abort(); return ErrAborted },
		"context": func(_ Transaction, m Message) error {
			_, err := m.Commit(ctx)
			if !errors.Is(err, errStop) {
				t.Error(err)
			}
			return errStop
		},
	} {
		tx, m, err := begin(box, "a@example.com")
		if err != nil {
			t.Fatal(err)
		}
		m.Write(make([]byte, 100_000))
		want := end(tx, m)
		if _, err := m.Commit(context.Background()); !errors.Is(err, want) {
			t.Errorf("%s: commit afterwards: %v", name, err)
		}
		if left := leftFiles(t, dir); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	box.Close()
	if _, _, err := begin(box, ""); !errors.Is(err, ErrClosed) {
		t.Errorf("begun after close: %v", err)
	}
}

// TestMaildirFailure breaks the directory at each step: the client gets a 4xx without a
// path, and no file is left.
func TestMaildirFailure(t *testing.T) {
	const want = "451 4.3.0 The message could not be stored"
	for _, broken := range []string{"tmp", "new"} {
		dir := t.TempDir()
		box, err := NewMaildir(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, broken)); err != nil {
			t.Fatal(err)
		}
		_, m, err := begin(box, "a@example.com")
		if broken == "tmp" {
			if err == nil || err.Error() != want {
				t.Errorf("tmp: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		m.Write([]byte("x\r\n"))
		if reply, err := m.Commit(context.Background()); err != nil || reply.String() != want {
			t.Errorf("new: %v, %v", reply, err)
		}
		if left := leftFiles(t, dir); len(left) > 0 {
			t.Errorf("left %v", left)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewMaildir(file, nil); err == nil {
		t.Error("a file is no maildir")
	}
}
