package world

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"spamgate/blocklist"
	"spamgate/blocklist/sender"
	"spamgate/blocklist/store"
	"spamgate/blocklist/verdict"
)

// minEntries is the number of entries below which a list is held.
const minEntries = 3

// protected is a name whose entry has a list held, or is left out.
const protected = "protected.example"

// A listModel is what is known of a list.
type listModel struct {
	name  string
	paths []string
	hold  bool // an entry that covers a protected name has it held

	current  []string            // what its files hold; "missing" for one that is missing
	late     string              // what is written after now when the file is read next
	versions map[string][]string // what its files held together, by its sum
	serials  int

	serves  string          // the sum of the version that serves
	stored  map[string]bool // the versions one of which the state directory has: a crash shows which
	pins    map[string]bool // likewise; "": no pin
	job     string          // what is still to be kept in history
	kept    string          // what was kept there last
	crashes int             // since its files changed

	accepted map[string]bool // contents whose acceptance was acknowledged: true; else false
}

const missing = "missing"

// sumOf returns the sum by which the product names a content.
func sumOf(texts []string) string {
	all := sha256.New()
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		all.Write(sum[:])
	}
	return hex.EncodeToString(all.Sum(nil))
}

// sum returns the sum of what the files hold; "" if one is missing.
func (l *listModel) sum() string {
	if slices.Contains(l.current, missing) {
		return ""
	}
	return sumOf(l.current)
}

// text returns a new content of a file with some entries.
func (l *listModel) text(entries ...string) string {
	l.serials++
	text := fmt.Sprintf("v%d.%s.example\n", l.serials, l.name)
	for _, e := range entries {
		text += e + "\n"
	}
	return text
}

// put writes a content into place, as a careful keeper does.
func (l *listModel) put(file int, text string) {
	l.current[file], l.crashes = text, 0
	if file == 0 {
		l.late = ""
	}
	if text == missing {
		_ = os.Remove(l.paths[file])
		return
	}
	hidden := filepath.Join(filepath.Dir(l.paths[file]), ".new")
	check(os.WriteFile(hidden, []byte(text), 0o600))
	check(os.Rename(hidden, l.paths[file]))
	l.wrote()
}

// putLate writes half of a content in place; the rest comes when the file is read.
func (l *listModel) putLate(text string) {
	l.put(0, text)
	half := len(text) / 2
	check(os.WriteFile(l.paths[0], []byte(text[:half]), 0o600))
	l.late = text[half:]
}

// reads is called when a file is read.
func (l *listModel) reads(path string) {
	if l.late == "" || path != l.paths[0] {
		return
	}
	f := must(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))
	must(f.WriteString(l.late))
	check(f.Close())
	l.late = ""
}

// wrote notes a version.
func (l *listModel) wrote() {
	if sum := l.sum(); sum != "" {
		l.versions[sum] = slices.Clone(l.current)
	}
}

// entries returns the entries of a version that count.
func (l *listModel) entries(texts []string) (entries []string) {
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' && line != protected {
				entries = append(entries, line)
			}
		}
	}
	return entries
}

// fit reports whether a list may serve a content of its files, and whether that is certain.
func (s *storeWorld) fit(l *listModel, texts []string) (fits, certain bool) {
	sum := sumOf(texts)
	switch {
	case len(texts) == 0, slices.Contains(texts, ""), slices.Contains(texts, missing):
		return false, true
	case l.hold && strings.Contains(strings.Join(texts, ""), protected):
		return false, true
	case len(l.entries(texts)) >= minEntries:
		return true, true
	}
	sure, known := l.accepted[sum]
	on, err := store.IsAccepted(s.config, l.name, sum)
	if sure || on && err == nil {
		return true, true
	}
	return false, !known
}

// may returns the versions that a list may serve after a look at its files. Before are those that it
// may have served until then.
func (s *storeWorld) may(l *listModel, before map[string]bool, troubled bool) map[string]bool {
	may := map[string]bool{}
	fits, certain := s.fit(l, l.current)
	if fits {
		may[l.sum()] = true
	}
	pin, err := store.ReadPin(s.config.StateDir, l.name)
	switch {
	case err == nil && pin == nil:
		if !fits {
			maps.Copy(may, before)
		}
	case err == nil && (may[pin.Sum] || len(before) == 1 && before[pin.Sum] || s.inHistory(l, pin.Sum)):
		if may = map[string]bool{pin.Sum: true}; troubled {
			maps.Copy(may, before)
		}
	default:
		may = maps.Clone(before)
	}
	if !certain {
		maps.Copy(may, before)
		may[l.sum()] = true
	}
	return may
}

func (s *storeWorld) inHistory(l *listModel, sum string) bool {
	versions, err := store.Versions(s.config.StateDir, l.name)
	return err == nil && slices.ContainsFunc(versions, func(v store.VersionInfo) bool { return v.Sum == sum })
}

// called names a version in the story.
func (l *listModel) called(sum string) string {
	if sum == "" {
		return "nothing"
	}
	texts, ok := l.versions[sum]
	if !ok {
		return "what nobody wrote"
	}
	var names []string
	for _, text := range texts {
		name := "empty"
		for line := range strings.Lines(text) {
			if line[0] == 'v' {
				name, _, _ = strings.Cut(line, ".")
			}
		}
		names = append(names, name)
	}
	return strings.Join(names, "+")
}

func (l *listModel) calledAll(sums map[string]bool) string {
	var names []string
	for sum := range sums {
		names = append(names, l.called(sum))
	}
	slices.Sort(names)
	return strings.Join(names, " or ")
}

// watch compares what serves with what may serve after a look at the files.
func (s *storeWorld) watch(troubled bool) error {
	set := s.store.Set()
	for i, stats := range set.Stats().Lists {
		l := s.lists[i]
		before := map[string]bool{l.serves: true}
		if l.serves == "" {
			before = l.stored
		}
		may := s.may(l, before, troubled)
		if past, loose := s.loose[l]; loose {
			maps.Copy(may, before)
			for sum := range l.pins {
				may[sum] = true
			}
			for _, sum := range append(past, l.sum()) {
				if fits, _ := s.fit(l, l.versions[sum]); fits {
					may[sum] = true
				}
			}
		}
		killed := errors.Is(stats.Err, store.ErrKilled)
		if killed && l.crashes >= 2 {
			maps.Copy(may, before)
		}
		if !may[stats.Sum] {
			return fmt.Errorf("list %s serves %s, and should serve %s (its error: %v)", l.name, l.called(stats.Sum), l.calledAll(may), stats.Err)
		}
		if fresh := l.serves == ""; fresh || stats.Sum != l.serves {
			l.job = stats.Sum
			if troubled {
				l.stored[stats.Sum] = true
			} else {
				l.stored = map[string]bool{stats.Sum: true}
			}
		}
		l.serves = stats.Sum
		if err := l.lookups(set); err != nil {
			return err
		}
		held := ""
		if stats.Err != nil {
			held = ", what its files hold is held"
		}
		s.world.tell("    list %s serves %s%s", l.name, l.called(l.serves), held)
	}
	clear(s.loose)
	return nil
}

// lookups asks for the entries of all versions of a list: those of the one that serves match.
func (l *listModel) lookups(set *blocklist.Set) error {
	serve := l.entries(l.versions[l.serves])
	for n := 1; n <= l.serials; n++ {
		name := fmt.Sprintf("v%d.%s.example", n, l.name)
		v, err := set.Lookup(verdict.Envelope, must(sender.Parse("u@"+name)))
		if err != nil {
			return fmt.Errorf("looking up %s: %w", name, err)
		}
		if listed := v.Action == verdict.Reject; listed != slices.Contains(serve, name) {
			return fmt.Errorf("list %s serves %s, but %s matches: %t", l.name, l.called(l.serves), name, listed)
		}
	}
	return nil
}

// lasting checks what a state directory keeps of what was acknowledged.
func (s *storeWorld) lasting() error {
	for _, l := range s.lists {
		for sum, acknowledged := range l.accepted {
			if on, err := store.IsAccepted(s.config, l.name, sum); acknowledged && (!on || err != nil) {
				return fmt.Errorf("list %s: that %s was accepted is forgotten (%v)", l.name, l.called(sum), err)
			}
		}
		pin, err := store.ReadPin(s.config.StateDir, l.name)
		if err != nil {
			return err
		}
		is := ""
		if pin != nil {
			is = pin.Sum
		}
		if !l.pins[is] {
			return fmt.Errorf("list %s is pinned at %s, not at %s", l.name, l.called(is), l.calledAll(l.pins))
		}
		if err := s.history(l); err != nil {
			return err
		}
	}
	return nil
}

// history checks that what a list's history has is what was kept, and is all there.
func (s *storeWorld) history(l *listModel) error {
	versions, err := store.Versions(s.config.StateDir, l.name)
	if err != nil {
		return err
	}
	var sums []string
	for _, v := range versions {
		var texts []string
		err := store.ExtractVersion(s.config.StateDir, l.name, v.ID, func(_ string, content io.Reader) error {
			text, err := io.ReadAll(content)
			texts = append(texts, string(text))
			return err
		})
		if err != nil {
			return err
		}
		if sums = append(sums, v.Sum); sumOf(texts) != v.Sum || l.versions[v.Sum] == nil {
			return fmt.Errorf("list %s: its history has as %s what was not kept as that", l.name, l.called(v.Sum))
		}
	}
	if l.kept != "" && !slices.Contains(sums, l.kept) {
		return fmt.Errorf("list %s: its history has lost %s", l.name, l.called(l.kept))
	}
	return nil
}

// leftovers returns an error if there are temporary files after the last process has ended.
func (s *storeWorld) leftovers() error {
	for _, path := range files(s.config.StateDir) {
		name := filepath.Base(path)
		switch {
		case strings.HasPrefix(name, "."), strings.HasPrefix(path, "work/"), strings.Contains(path, "/."):
			return fmt.Errorf("%s is left", temporary.ReplaceAllString(path, "*"))
		}
	}
	return nil
}
