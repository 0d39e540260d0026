package hashattack

import (
	"strings"
	"testing"
)

func TestChooseBetween(t *testing.T) {
	for target, want := range map[string]string{
		"example.com": "",
		"x.example":   "0", // at an even place no state leads to AP's bits
		"y.example":   "0",
		"abc.example": "0",
		"ab.xn--p1ai": "", // at an odd place none does
		"test5.ph":    "",
		"www.abc.ph":  "",
		"www.ck":      ".", // any name.ck is a public suffix
	} {
		if got := newTower(teams[0], target, nil, 1).between; got != want {
			t.Errorf("%s: %q between the storeys, want %q", target, got, want)
		}
	}
}

// TestEveryTargetCanLand wants a state to land in, for all short names under
// suffixes of many kinds: without one the search would be in vain.
func TestEveryTargetCanLand(t *testing.T) {
	const suffixes = ".example .com .technology .museum .xn--p1ai .uk .co.uk .de .info .photography .international " +
		".xn--vermgensberatung-pwb .hhpp .ph .hph.hph .ck .kawasaki.jp .hp .pppp .xxxxxxxx"
	const last = alphabet + "-_"
	var labels []string
	for i := range last {
		labels = append(labels, last[i:i+1], "h"+last[i:i+1], "px"+last[i:i+1], "www."+last[i:i+1])
	}
	tried, other := 0, 0
	for suffix := range strings.FieldsSeq(suffixes) {
		for _, label := range labels {
			target, err := readTarget(label + suffix)
			if err != nil {
				continue
			}
			tried++
			for _, team := range teams {
				tower := newTower(team, target, nil, 1)
				if n := len(tower.landings(searched + len(tower.between))); n == 0 {
					t.Errorf("%s: no state leads to the target's bits of %s", target, team[2])
				}
				if len(tower.landings(searched)) == 0 {
					other++
				}
			}
		}
	}
	if tried < 1000 || other == 0 {
		t.Errorf("%d targets tried, want a thousand; of %d names none could land without a byte between the storeys, want some", tried, other)
	}
}
