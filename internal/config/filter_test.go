package config

import (
	"strings"
	"testing"
)

// TestFamilies checks the family for each kind, with and without a family in the file.
func TestFamilies(t *testing.T) {
	for _, c := range []struct{ lines, want string }{
		{``, "classic"},
		{`kind = "classic"`, "classic"},
		{`kind = "sharded"`, "classic"},
		{`kind = "auto"`, "classic"},
		{`kind = "fuse"`, ""},
		{`kind = "fuse";family = "";fpr = 2.4e-10`, ""},
		{`kind = "sharded";family = "classic9"`, "classic9"},
		{`kind = "auto";family = "classic:RS,JS,AP"`, "classic:RS,JS,AP"},
		{`kind = "sized"`, "double"},
		{`kind = "counting"`, "double"},
		{`kind = "sized";family = "classic"`, "classic"},
		{`kind = "sized";family = "weighted:61,7"`, "weighted:61,7"},
		{`kind = "sized";family = "digest"`, "digest"},
		{`kind = "sized";family = "double:murmur3"`, "double:murmur3"},
		{`kind = "counting";family = "seeded:0";fpr = 0.001`, "seeded"},
		{`family = "classic:RS,JS,PJW,BKDR,SDBM,DJB,DEK,FNV,AP"`, "classic9"},
	} {
		text := "[filter]\n" + strings.ReplaceAll(c.lines, ";", "\n") + "\n[[list]]\nname = \"a\"\npath = \"a\"\n"
		cfg, err := parse("config.toml", []byte(text), false)
		if err != nil {
			t.Errorf("%s: %v", c.lines, err)
		} else if cfg.Filter.Family != c.want {
			t.Errorf("%s: family %q, want %q", c.lines, cfg.Filter.Family, c.want)
		}
	}
}
