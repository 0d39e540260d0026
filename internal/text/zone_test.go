package text

import "testing"

func TestShownZone(t *testing.T) {
	for zone, want := range map[string]string{
		"dbl.spamhaus.org": "dbl.spamhaus.org",
		"multi.surbl.org":  "multi.surbl.org",
		"abcdefghij0123456789klmnop.dbl.dq.spamhaus.net": "....dbl.dq.spamhaus.net",
		"": "",
	} {
		if got := ShownZone(zone); got != want {
			t.Errorf("%s: %s, want %s", zone, got, want)
		}
	}
}
