package store

import (
	"bytes"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// Two builds without a revision, such as from archives, are different programs.
func TestProgramWithoutRevision(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok || slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" }) {
		t.Skip("the test has a revision")
	}
	if sum := buildSum(); sum == "" || !strings.HasSuffix(program(), " "+sum) {
		t.Errorf("the program is called %q, and its build %q", program(), sum)
	}
}

func TestBuildNote(t *testing.T) {
	var notes [][]byte
	for _, name := range []string{"/proc/self/exe", "go"} {
		found, err := exec.LookPath(name)
		if err != nil {
			t.Skip(err)
		}
		f, err := os.Open(found)
		must(t, err)
		t.Cleanup(func() { f.Close() })
		notes = append(notes, buildNote(f))
	}
	if notes[0] == nil || bytes.Equal(notes[0], notes[1]) {
		t.Errorf("two programs have the notes %q and %q", notes[0], notes[1])
	}
	if note := buildNote(strings.NewReader("not a program")); note != nil {
		t.Errorf("a text has the note %q", note)
	}
}
