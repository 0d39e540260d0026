package page

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"spamgate/internal/hashlab"
)

func TestIsOurs(t *testing.T) {
	empty := written(t, new(hashlab.Report))
	for _, c := range []struct {
		name, text string
		want       bool
	}{
		{"a page", written(t, fixture(t)), true},
		{"a page of nothing", empty, true},
		{"a page that broke off after its style began", empty[:strings.Index(empty, "<style>")+10], true},
		{"nothing", "", false},
		{"keys", "example.com\nexample.net\n", false},
		{"keys with the tag", "example.com\n" + generator + "\n", false},
		{"another's page", beginning + `<html><head><meta name="generator" content="another"></head></html>`, false},
		{"another's page that quotes the tag", beginning + "<html><head><title>x</title></head><body>" + generator + "</body></html>", false},
		{"another's page with the tag far below", beginning + "<html><head>" + strings.Repeat(" ", headBytes) + generator + "</head></html>", false},
	} {
		got, err := IsOurs(iotest.OneByteReader(strings.NewReader(c.text)))
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
	broken := errors.New("broken")
	if _, err := IsOurs(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
}
