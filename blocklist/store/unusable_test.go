package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

func TestWayOut(t *testing.T) {
	denied := fmt.Errorf("open list.txt: %w", fs.ErrPermission)
	for _, tt := range []struct {
		err      error
		readOnly bool
		want     string
	}{
		{errors.New("other"), true, "optional = true"},
		{denied, true, "run it as root or as the gate's user"},
		{denied, false, "let the gate's user read it"},
	} {
		if got := wayOut(tt.err, tt.readOnly); !strings.Contains(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
