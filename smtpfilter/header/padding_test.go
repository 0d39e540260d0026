package header

import (
	"slices"
	"strings"
	"testing"
)

// readings returns every address that a value may be read as.
func readings(value string) []string {
	r := Senders([]byte("From: "+value), asked)
	var all []string
	for _, s := range r.Senders {
		all = append(all, s.Address)
		all = append(all, Routes(s.Address)...)
	}
	for _, f := range r.Forms {
		all = append(all, f.Readings()...)
	}
	return all
}

// TestPaddingHidesNothing wants padding that readers ignore, or read as something else,
// not to hide a sender: parts are cut after it was removed.
func TestPaddingHidesNothing(t *testing.T) {
	zero := func(n int) string { return strings.Repeat("\u200b", n) }
	for name, c := range map[string]struct{ value, want string }{
		"invisible behind a domain":      {"Ann <spam@listed.example" + zero(400) + ">", "spam@listed.example"},
		"beside another mailbox":         {"<spam@listed.example" + zero(400) + "> <a@clean.example>", "spam@listed.example"},
		"soft hyphens in a domain":       {"spam@list" + strings.Repeat("\u00ad", 3000) + "ed.example", "spam@listed.example"},
		"joiners behind a domain":        {"spam@listed.example" + strings.Repeat("\u200d", 3000), "spam@listed.example"},
		"dots behind a domain":           {"spam@listed.example" + strings.Repeat(".", 1100), "spam@listed.example"},
		"ideographic dots":               {"spam@listed.example" + strings.Repeat("\u3002", 1100), "spam@listed.example"},
		"dots in a domain":               {"spam@listed" + strings.Repeat(".", 3000) + "example", "spam@listed.example"},
		"brackets behind a domain":       {"spam@listed.example" + strings.Repeat("]", 3000), "spam@listed.example"},
		"a path behind a domain":         {"spam@listed.example/" + strings.Repeat("x", 1100), "spam@listed.example"},
		"invisible before a local part":  {zero(1400) + "spam@exact.example", "spam@exact.example"},
		"invisible, with a cut in one":   {"x" + zero(1400) + "spam@exact.example", "xspam@exact.example"},
		"invisible in a route":           {"spam" + zero(1400) + "%listed.example", "spam@listed.example"},
		"invisible behind a route":       {"spam%listed.example" + zero(4000), "spam@listed.example"},
		"dots behind a route":            {"spam%listed.example" + strings.Repeat(".", 5000), "spam@listed.example"},
		"labels and dots around a route": {"spam%" + strings.Repeat("a.", 3000) + "listed.example" + strings.Repeat(".", 5000), "spam@" + strings.Repeat("a.", 503) + "listed.example"},
		"a long user in a route":         {strings.Repeat("a", 4100) + "%listed.example", strings.Repeat("a", 4096) + "@listed.example"},
		"a long user behind a route":     {"listed.example!" + strings.Repeat("é", 4100), strings.Repeat("é", 2048) + "@listed.example"},
		"a long host before a user":      {strings.Repeat("a.", 3000) + "listed.example!spam", "spam@" + strings.Repeat("a.", 503) + "listed.example"},
		"a long user in our domain":      {strings.Repeat("a", 4100) + "%listed.example@own.example", strings.Repeat("a", 4096) + "@listed.example"},
		"a long domain alone":            {"@" + strings.Repeat("a.", 3000) + "listed.example", `""@` + strings.Repeat("a.", 503) + "listed.example"},
		"a cut in a character of a host": {"spam@x" + strings.Repeat("é", 600) + ".listed.example", "spam@" + strings.Repeat("é", 502) + ".listed.example"},
		"a cut in a character of a user": {"x" + strings.Repeat("é", 2100) + "@listed.example", "x" + strings.Repeat("é", 2047) + "@listed.example"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := readings(c.value); !slices.Contains(got, c.want) {
				for i, a := range got {
					got[i] = a[:min(len(a), 60)] + "…" + a[max(0, len(a)-60):]
				}
				t.Errorf("%.60q of %d bytes: no %.60q in %q", c.value, len(c.value), c.want, got)
			}
		})
	}
}
