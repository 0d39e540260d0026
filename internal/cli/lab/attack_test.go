package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spamgate/internal/hashattack"
)

// attackSet is a list that "hashlab attack" wrote, and its names.
func attackSet(t *testing.T, target string) (list string, names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../hashattack/testdata/sets", target+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			names = append(names, strings.TrimSpace(line))
		}
	}
	return string(text), names
}

// someAttack is a report on a known set, with made-up numbers for the keyed
// filter.
func someAttack(t *testing.T, target string) attackReport {
	t.Helper()
	_, names := attackSet(t, target)
	r, err := hashattack.Judge(target, names)
	if err != nil {
		t.Fatal(err)
	}
	r.Seed = 1
	return attackReport{r, &hashattack.Keyed{
		K:           11,
		Same:        hashattack.Trial{Names: 3, Keys: 1000, Upper: 0.00299, Bits: 1},
		Guess:       hashattack.Guess{Names: make([]string, 11), Examined: 54525952, MayContain: true},
		Guessed:     hashattack.Trial{Names: 11, Keys: 1000, Maybes: 2, Upper: 0.0063},
		Log10Chance: -76.01,
		HalfFill:    0.93893,
		HalfNames:   6.8e7,
	}}
}

func TestAttackText(t *testing.T) {
	for _, target := range []string{"example.com", "bbc.co.uk"} {
		list, _ := attackSet(t, target)
		var out bytes.Buffer
		if err := someAttack(t, target).print(&out, false); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range []string{
			"asks for 10 of its 2^28 bits",
			strings.Join(strings.Fields(list), " "),
			"With these 3 names listed and nothing else, 28 of 268435456 bits are set, and the filter says maybe to " + target,
			"The gate accepts mail from " + target,
			"confirm = false it would be refused",
			"1,000 random keys tried",
			"the 3 names above 0.001 of 11 0 (at 95%: below 0.3%)",
			"11 names for a guessed key 0 of 11 2 (at 95%: below 0.63%)",
			"do make the target a maybe; brute force found them among 54525952",
			"1 in 10^76",
			"93.9% of all bits",
			"68 million names",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in\n%s", target, want, out.String())
			}
		}
		for line := range strings.Lines(out.String()) {
			if len(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%d columns: %s", len(line), line)
			}
		}
		if !strings.HasSuffix(out.String(), ".\n") || strings.HasSuffix(out.String(), "\n\n") {
			t.Errorf("the text ends in %q", out.String()[out.Len()-10:])
		}
	}
}

func TestAttackTextOfParts(t *testing.T) {
	_, names := attackSet(t, "example.com")
	for n, says := range map[int]string{0: "No name was found.", 1: "With 1 name listed, the filter still knows", 2: "With 2 names listed"} {
		says = strings.Replace(says, "With", "with", 1)
		r, err := hashattack.Judge("example.com", names[:n])
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := (attackReport{Result: r}).print(&out, false); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(out.String()), " ")
		if !strings.Contains(text, says) || strings.Contains(text, "KEYED") || strings.Contains(text, "accepts") {
			t.Errorf("%d names: %q is missing in\n%s", n, says, out.String())
		}
	}
}

func TestAttackJSON(t *testing.T) {
	var out bytes.Buffer
	if err := someAttack(t, "example.com").print(&out, true); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Target     string
		Bits       []struct{ Hashes []string }
		Names      []struct{ Name string }
		MayContain bool `json:"may_contain"`
		Keyed      struct {
			Same struct{ Keys, Maybes int } `json:"same_names"`
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Target != "example.com" || len(got.Bits) != 10 || len(got.Names) != 3 || !got.MayContain || got.Keyed.Same.Keys != 1000 {
		t.Errorf("%+v of\n%s", got, out.String())
	}
	out.Reset()
	r, err := hashattack.Judge("example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := (attackReport{Result: r}).print(&out, true); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "keyed") || !strings.Contains(text, `"names": []`) {
		t.Errorf("of no names:\n%s", text)
	}
}

// TestAttackInterrupted ends the search at once: what there is is printed, and
// no file is written.
func TestAttackInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "list.txt")
	var out bytes.Buffer
	for path, want := range map[string]string{
		path: "interrupted: what was found is printed, and no file was written",
		"":   "interrupted: what was found is printed",
	} {
		out.Reset()
		flags := newAttackFlags()
		flags.path = path
		err := runAttack(ctx, "example.com", flags, &out, io.Discard)
		if err == nil || err.Error() != want || !strings.Contains(out.String(), "No name was found") {
			t.Errorf("%v, want %s; printed\n%s", err, want, out.String())
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the list: %v", err)
	}
}

// TestAttackReplaces wants no file replaced but those that hold nothing or a list
// of the command's own, and every other as it was.
func TestAttackReplaces(t *testing.T) {
	list, _ := attackSet(t, "bbc.co.uk")
	for name, c := range map[string]struct {
		text     string
		replaced bool
	}{
		"empty":       {"", true},
		"own":         {list, true},
		"own comment": {hashattack.ListHead + "7 example.com\n", true},
		"list":        {"spam.example\n", false},
		"comment":     {"# a list\nspam.example\n", false},
		"short":       {"#", false},
		"almost":      {strings.TrimSuffix(hashattack.ListHead, " "), false},
		"later line":  {"spam.example\n" + list, false},
		"blank":       {"\n" + list, false},
	} {
		path := filepath.Join(t.TempDir(), "list.txt")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		want, _ := attackSet(t, "example.com")
		err := writeAttackList(t.Context(), someAttack(t, "example.com").Result, path)
		if !c.replaced {
			want = c.text
			if err == nil || !strings.Contains(err.Error(), "name a new file, or delete this one first") {
				t.Errorf("%s: %v", name, err)
			}
			// And it is asked before the search, which would print something.
			var out bytes.Buffer
			flags := newAttackFlags()
			flags.path = path
			if again := runAttack(t.Context(), "example.com", flags, &out, io.Discard); again == nil || again.Error() != err.Error() || out.Len() > 0 {
				t.Errorf("%s: %v before the search, printed\n%s", name, again, out.String())
			}
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %v, holds\n%s\nwant\n%s", name, err, got, want)
		}
	}
}

func TestAttackWritesList(t *testing.T) {
	list, _ := attackSet(t, "example.com")
	path := filepath.Join(t.TempDir(), "list.txt")
	if err := writeAttackList(t.Context(), someAttack(t, "example.com").Result, path); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != list {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestCostsText: the table fits 80 columns, and says what was found under secrets.
func TestCostsText(t *testing.T) {
	r := costReport{"example.com", 1, []hashattack.Cost{
		{Family: "classic", K: 11, Search: hashattack.Multicollision, Names: 3, Tried: 111_832_346, Seconds: 38.31, MayContain: true, Guesses: 81_000},
		{Family: "seeded, seed known", K: 11, Search: hashattack.BruteForce, Names: 11, Tried: 1_120_586_240, Seconds: 112.9},
		{Family: "seeded, seed secret", K: 11, Secret: "seed", Search: hashattack.Blind, Secrets: &hashattack.Trial{Keys: 1000, Maybes: 2}, Guesses: 161_196},
	}}
	var out bytes.Buffer
	if err := printCosts(&out, r); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"classic 11 multicollision 3 111,832,346 38.3 yes", "seeded, seed known 11 brute force 11 1,120,586,240 112.9 no",
		"seeded, seed secret 11 blind - - - 2/1,000", "one of 161,196 is a false positive",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}
