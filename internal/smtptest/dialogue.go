package smtptest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Line is a line of a dialogue.
type Line struct {
	Number int    // in its file, from 1
	Verb   string // the first word
	Text   string // what follows the verb and a space
}

// Dialogue is a parsed dialogue file.
type Dialogue struct {
	File  string
	SetUp []Line
	Steps []Line
}

// Parse parses the text of a dialogue.
func Parse(file, text string) *Dialogue {
	d := &Dialogue{File: file}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(line, "\n")
		if line == "---" {
			d.SetUp, d.Steps = d.Steps, nil
			continue
		}
		if line != "" && line[0] != '#' {
			verb, text, _ := strings.Cut(line, " ")
			d.Steps = append(d.Steps, Line{number, verb, text})
		}
	}
	return d
}

// Load parses the dialogues of testdata/dialogues.
func Load(t testing.TB) []*Dialogue {
	t.Helper()
	files, err := filepath.Glob("testdata/dialogues/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no dialogues", err)
	}
	var all []*Dialogue
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Parse(file, string(text)))
	}
	return all
}

// Play plays each dialogue of testdata/dialogues in a parallel subtest, which
// has the name of its file.
func Play(t *testing.T, play func(*testing.T, *Dialogue)) {
	for _, d := range Load(t) {
		t.Run(strings.TrimSuffix(filepath.Base(d.File), ".txt"), func(t *testing.T) {
			t.Parallel()
			play(t, d)
		})
	}
}

// Each calls do with each line, and fails the test at the first error.
func (d *Dialogue) Each(t testing.TB, lines []Line, do func(Line) error) {
	t.Helper()
	for _, l := range lines {
		if err := do(l); err != nil {
			t.Fatalf("%s:%d: %s %s: %v", d.File, l.Number, l.Verb, l.Text, err)
		}
	}
}
