package look

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"spamgate/blocklist"
	"spamgate/internal/admin"
	"spamgate/internal/listfiles"
)

func TestSayWho(t *testing.T) {
	denied := fmt.Errorf("list blocked: %w", fs.ErrPermission)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fs.ErrNotExist, "file does not exist"},
		{denied, "list blocked: permission denied; run this as " + listfiles.WhoOwns},
		{fmt.Errorf("lists add: %w", listfiles.WithAuthority(denied, listfiles.WhoServes)), "lists add: list blocked: permission denied; run this as " + listfiles.WhoServes},
	} {
		err := listfiles.WithAuthority(tt.err, listfiles.WhoOwns)
		if err.Error() != tt.want {
			t.Errorf("%q, want %q", err, tt.want)
		}
		if !errors.Is(err, tt.err) {
			t.Errorf("%q is no longer what it was", err)
		}
	}
	if err := listfiles.WithAuthority(nil, listfiles.WhoOwns); err != nil {
		t.Errorf("without an error: %v", err)
	}
}

func TestNotPermitted(t *testing.T) {
	read := []blocklist.ListStats{{Name: "a"}, {Name: "b", Err: fs.ErrPermission}, {Name: "c", Err: fs.ErrNotExist}}
	for _, tt := range []struct {
		shown string
		fails bool
	}{{"a", false}, {"b", true}, {"c", false}} {
		if err := notPermitted([]admin.List{{Name: tt.shown}}, read); (err != nil) != tt.fails {
			t.Errorf("%s: %v", tt.shown, err)
		}
	}
}
