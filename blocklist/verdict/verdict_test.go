package verdict

import (
	"encoding/json"
	"testing"
)

func TestNames(t *testing.T) {
	type names struct {
		Actions []Action
		Stages  []Stage
	}
	const text = `{"Actions":["accept","tag","discard","defer","reject","monitor"],` +
		`"Stages":["envelope","header","envelope,header"]}`
	var n names
	if err := json.Unmarshal([]byte(text), &n); err != nil {
		t.Fatal(err)
	}
	want := names{
		[]Action{Accept, Tag, Discard, Defer, Reject, Monitor},
		[]Stage{Envelope, Header, Envelope | Header},
	}
	back, err := json.Marshal(want)
	if err != nil || string(back) != text {
		t.Errorf("%s, %v", back, err)
	}
	if again, _ := json.Marshal(n); string(again) != text {
		t.Errorf("read as %s", again)
	}
}

func TestUnknownNames(t *testing.T) {
	var a Action
	var s Stage
	for want, err := range map[string]error{
		`unknown action "drop": use accept, tag, discard, defer, reject, monitor`: a.UnmarshalText([]byte("drop")),
		`unknown stage "body": use envelope, header`:                              s.UnmarshalText([]byte("header,body")),
		`unknown stage "": use envelope, header`:                                  s.UnmarshalText(nil),
		`unknown stage 0: use envelope, header`:                                   Stage(0).Validate(),
		`unknown stage 6: use envelope, header`:                                   Stage(6).Validate(),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if text := Action(9).String(); text != "Action(9)" {
		t.Error(text)
	}
	if a != Accept || s != 0 {
		t.Error("changed by a text that was refused")
	}
	for _, s := range []Stage{Envelope, Header, AllStages} {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	}
}

// TestMatchJSON: what commands print of a match, whatever else it holds.
func TestMatchJSON(t *testing.T) {
	m := Match{
		List: "l", Entry: "e", File: "f", Line: 3, Reason: "r", Note: "n", PublicReason: true,
		Unconfirmed: true, Action: Reject, Allow: true, Monitor: true, Shielded: true, Rank: 4,
	}
	for want, m := range map[string]Match{
		`{"list":"l","entry":"e","file":"f","line":3,"reason":"r","note":"n","unconfirmed":true,"action":"reject"}`: m,
		`{"list":"l","entry":"","file":"","line":0,"action":"accept"}`:                                              {List: "l"},
	} {
		if got, err := json.Marshal(m); err != nil || string(got) != want {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
	}
}

func TestParseRecipient(t *testing.T) {
	for path, want := range map[string][3]string{
		"":                          {"", "", ""},
		"postmaster":                {"postmaster", "postmaster", ""},
		"PostMaster":                {"PostMaster", "postmaster", ""},
		"User@Example.ORG":          {"User", "user", "example.org"},
		`"us er"@example.org`:       {`"us er"`, `"us er"`, "example.org"},
		`"User"@example.org`:        {`"User"`, "user", "example.org"},
		"ann@xn--bcher-kva.example": {"ann", "ann", "xn--bcher-kva.example"},
		"ann@Bücher.example":        {"ann", "ann", "xn--bcher-kva.example"},
		"ann@*.Example":             {"ann", "ann", "*.example"},
		"a@[192.0.2.1]":             {"a", "a", "[192.0.2.1]"},
	} {
		r := ParseRecipient(path)
		if got := [3]string{r.LocalPart(), r.Local, r.Domain}; got != want || r.Path != path {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
