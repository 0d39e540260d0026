package store

import "testing"

// TestKillsOfAVersion: a reader that is gone counts as killed, for the version that it read.
func TestKillsOfAVersion(t *testing.T) {
	s := openStill(t, stateful(t, blockList("spam", write(t, inDir(t, "spam.txt"), "one.example\n"))))
	must(t, s.state.noteBuild("spam", buildRecord{"first", 1, "gone"}))
	if first, second := s.state.kills("spam", "first"), s.state.kills("spam", "second"); first != 2 || second != 0 {
		t.Errorf("%d and %d kills", first, second)
	}
}
