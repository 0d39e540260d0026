package blocklist

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/blocklist/verdict"
)

// The files are described in testdata/README.md.
func TestPrecedence(t *testing.T) {
	files, err := filepath.Glob("testdata/precedence/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			config, cases := readScenario(t, file)
			set := build(t, config)
			for _, c := range cases {
				d := lookup(t, set, c.stage, parse(t, c.sender))
				if got := describeDecision(d); got != c.want {
					t.Errorf("%s %s:\ngot  %s\nwant %s", c.stage, c.sender, got, c.want)
				}
			}
		})
	}
}

type scenarioCase struct {
	stage        verdict.Stage
	sender, want string
}

func readScenario(t *testing.T, file string) (fileConfig, []scenarioCase) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := fileConfig{}
	dir := t.TempDir()
	var cases []scenarioCase
	var content strings.Builder
	finish := func() {
		if n := len(c.Lists); n > 0 {
			write(t, c.Lists[n-1].Paths[0], content.String())
		}
		content.Reset()
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "  "):
			content.WriteString(line + "\n")
		case line == "policy monitor":
			c.Monitor = true
		case strings.HasPrefix(line, "list "):
			finish()
			c.Lists = append(c.Lists, readList(t, dir, strings.Fields(line)[1:]))
		default:
			identity, want, ok := strings.Cut(line, " => ")
			name, sender, ok2 := strings.Cut(identity, " ")
			var stage verdict.Stage
			if err := stage.UnmarshalText([]byte(name)); err != nil || !ok || !ok2 {
				t.Fatalf("%s: cannot read %q", file, line)
			}
			cases = append(cases, scenarioCase{stage, sender, want})
		}
	}
	finish()
	return c, cases
}

func readList(t *testing.T, dir string, words []string) fileList {
	l := blockList(words[0], filepath.Join(dir, words[0]))
	l.Action = verdict.Accept
	unmarshal := func(err error) {
		if err != nil {
			t.Fatalf("list %s: %v", l.Name, err)
		}
	}
	unmarshal(l.Type.UnmarshalText([]byte(words[1])))
	for _, word := range words[2:] {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "header_action":
			unmarshal(l.HeaderAction.UnmarshalText([]byte(value)))
		case "stages":
			unmarshal(l.Stages.UnmarshalText([]byte(value)))
		case "override":
			l.Override = true
		case "exact":
			l.Exact = true
		default:
			unmarshal(l.Action.UnmarshalText([]byte(word)))
		}
	}
	return l
}

// describeDecision puts a decision in the words of testdata/precedence.
func describeDecision(d verdict.Verdict) string {
	words := []string{d.Action.String()}
	if !d.Match.IsZero() {
		words = append(words, matchText(d.Match))
	}
	if d.Shielded {
		words = append(words, "shielded")
	}
	if d.ClearsMessage {
		words = append(words, "clears")
	}
	var monitored []string
	for _, m := range d.Monitored {
		text := matchText(m)
		if m.Shielded {
			text += "/shielded"
		}
		monitored = append(monitored, text)
	}
	if monitored != nil {
		words = append(words, "monitored="+strings.Join(monitored, ","))
	}
	if d.Would != nil {
		text := "would=" + d.Would.Action.String()
		if !d.Would.Match.IsZero() {
			text += "/" + matchText(d.Would.Match)
		}
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

func matchText(m verdict.Match) string { return fmt.Sprintf("%s:%s", m.List, m.Entry) }

// Every form of an entry, through a Set.
func TestEntries(t *testing.T) {
	text, err := os.ReadFile("testdata/entries.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		row := strings.Split(line, "\t")
		t.Run(line, func(t *testing.T) {
			l := blockList("list", write(t, inDir(t, "list.txt"), row[1]+"\n"))
			switch row[0] {
			case "exact":
				l.Exact = true
			case "suffix":
				l.AllowPublicSuffix = true
			case "allow":
				l.Type, l.Action = Allow, verdict.Accept
			}
			set := build(t, fast(l))
			if n := set.Stats().Entries; n != 1 {
				t.Fatalf("%d entries", n)
			}
			d := lookup(t, set, verdict.Envelope, parse(t, row[2]))
			if got := len(d.Matches) == 1; got != (row[3] == "yes") {
				t.Errorf("matches: %v", d.Matches)
			}
		})
	}
}
