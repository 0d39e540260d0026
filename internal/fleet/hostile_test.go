package fleet

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"spamgate/blocklist/listfile"
	"spamgate/internal/fleet/fleettest"
)

// packed returns a content as it is stored.
func packed(t testing.TB, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := packInto(&b, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func shaOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// TestHostileContent offers a gate versions whose contents are not what they should be: it
// keeps its list, and takes the next good version.
func TestHostileContent(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a := newGate(t, "a", s, func(o *Options) { o.Lists[0].MaxBytes = 1 << 20 })
	own := "one@example.net\n" + noise(2000)
	a.write("blocked", own)
	a.start()
	first := equal(t, "blocked", a)
	kv, err := client(t, s).KeyValue(t.Context(), bucketLists)
	if err != nil {
		t.Fatal(err)
	}
	const evil = "evil@example.net\n"
	bomb := strings.Repeat("0", 16<<20)
	n := strings.Count(own, "\n")
	good := packed(t, fmt.Sprintf("a%d 1\n%s", n, evil))
	inline := func(v *Version, object []byte) { v.Inline = map[string][]byte{fullName(v.SHA256): object} }
	edit := func(v *Version, edit []byte) { v.Base, v.Whole, v.Edit, v.Since = first.SHA256, first.SHA256, edit, 1 }
	last := first.Sequence
	for name, change := range map[string]func(*Version){
		"not packed":     func(v *Version) { inline(v, []byte(evil)) },
		"another digest": func(v *Version) { inline(v, packed(t, "other")) },
		"missing":        func(v *Version) { v.SHA256, v.Snapshot = shaB, shaB },
		"a bomb":         func(v *Version) { inline(v, packed(t, bomb)) },
		"a bomb that says so": func(v *Version) {
			v.SHA256 = shaOf(bomb)
			v.Snapshot, v.Size = v.SHA256, int64(len(bomb))
			inline(v, packed(t, bomb))
		},
		"cut off":                        func(v *Version) { p := packed(t, evil); inline(v, p[:len(p)-3]) },
		"a damaged edit":                 func(v *Version) { edit(v, good[:len(good)-1]) },
		"an edit that misfits":           func(v *Version) { edit(v, packed(t, fmt.Sprintf("d%d 1\n", n+1))) },
		"not an edit":                    func(v *Version) { edit(v, packed(t, evil)) },
		"an edit of another one":         func(v *Version) { edit(v, good); v.Base = shaA },
		"an edit that makes another one": func(v *Version) { edit(v, good) },
		"an edit of itself":              func(v *Version) { edit(v, good); v.Base = v.SHA256 },
		"an edit with a bomb":            func(v *Version) { edit(v, packed(t, fmt.Sprintf("a%d 1\n%s\n", n, bomb))) },
	} {
		last++
		v := &Version{Format: 1, List: "blocked", Kind: Managed, Sequence: last, SHA256: shaOf(evil), Snapshot: shaOf(evil), Size: int64(len(evil)), Member: "evil", Time: time.Now()}
		change(v)
		value, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parseVersion(value, "blocked", Managed); err != nil {
			t.Fatalf("%s: the version is refused for another reason: %v", name, err)
		}
		if _, err := kv.Put(t.Context(), "list.blocked", value); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+": the gate says it", func() bool {
			err := a.failing("blocked")
			return err != nil && strings.Contains(err.Error(), v.String())
		})
		if a.read("blocked") != own {
			t.Fatalf("%s: the list is changed", name)
		}
	}
	last++
	v := &Version{Format: 1, List: "blocked", Kind: Managed, Sequence: last, SHA256: shaOf(own + evil), Size: int64(len(own + evil)), Snapshot: shaOf(own + evil), Member: "b", Time: time.Now()}
	edit(v, packed(t, fmt.Sprintf("a%d 1\nother@example.net\n", n))) // the gate takes the whole instead
	inline(v, packed(t, own+evil))
	value, err := v.encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), "list.blocked", value); err != nil {
		t.Fatal(err)
	}
	has(t, "blocked", own+evil, a)

	v.Sequence += maxJump + 1 // nobody can use the numbers up
	if value, err = v.encode(); err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), "list.blocked", value); err != nil {
		t.Fatal(err)
	}
	a.mustAdd("blocked", "two@example.net")
	if current := equal(t, "blocked", a); current.Sequence != last+1 {
		t.Errorf("got %v", current)
	}
}

// FuzzEachEntry wants each line of a list to be found once, without its reason.
func FuzzEachEntry(f *testing.F) {
	f.Add("one@example.net # reason\n\n# comment\ntwo.example\r\nthree.example")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		n, l := 0, &List{}
		_, err := l.eachEntry(strings.NewReader(text), func(e listfile.Entry) error {
			n++
			if line := listfile.LineOf(e, l.Options).String(); e.Key == "" || strings.ContainsAny(line, "\n\r") {
				t.Errorf("the entry %q has the line %q", e.Key, line)
			}
			return nil
		})
		if err != nil { // it is packed, or no text
			return
		}
		if n > strings.Count(text, "\n")+1 {
			t.Errorf("%d entries, %v", n, err)
		}
		c, err := l.compareEntries(strings.NewReader(text), strings.NewReader(text+"\nmore.example\n"))
		if err != nil || len(c.missing) != 0 {
			t.Errorf("a list lacks entries of its own: %v, %v", c, err)
		}
	})
}

// TestCopiedValue copies a shared value to another key: no gate takes it for that of the key.
func TestCopiedValue(t *testing.T) {
	t.Parallel()
	s := fleettest.Start(t, nil)
	a, b := startGate(t, "a", s, nil), startGate(t, "b", s, nil)
	set := func(name string) {
		t.Helper()
		if err := a.SetState(t.Context(), StateKey("pin", name), func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage("1"), nil }); err != nil {
			t.Fatal(err)
		}
		eventually(t, "b has the pin of "+name, func() bool { return b.State(StateKey("pin", name)) != nil })
	}
	eventually(t, "a is connected", func() bool { return a.Status().Connected && b.Status().Connected })
	set("blocked")
	kv, err := client(t, s).KeyValue(t.Context(), bucketState)
	if err != nil {
		t.Fatal(err)
	}
	pin, err := kv.Get(t.Context(), StateKey("pin", "blocked"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), StateKey("pin", "other"), pin.Value()); err != nil {
		t.Fatal(err)
	}
	set("third") // b sees it after the copy
	if got := b.State(StateKey("pin", "other")); got != nil {
		t.Errorf("b takes %s", got)
	}
}
