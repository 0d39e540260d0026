package accounts

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// FuzzName parses names: a normal form is its own, and safe in files, logs and pages.
func FuzzName(f *testing.F) {
	for _, s := range []string{"ann", "Ann@Example.net", "", "a b", "\u212a", "<script>", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		normal, err := ParseName(name)
		if err != nil {
			return
		}
		if again, err := ParseName(normal); err != nil || again != normal {
			t.Errorf("%q: %q, then %q, %v", name, normal, again, err)
		}
		if strings.ContainsAny(normal, " \t\r\n\"'<>&,/\\$%+=") || len(normal) != len(name) {
			t.Errorf("%q became %q", name, normal)
		}
	})
}

// FuzzSecret tries cookies and tokens: none but those that were given out opens anything.
func FuzzSecret(f *testing.F) {
	s, _, _ := stores(f)
	token, err := s.AddToken("ci", Viewer, nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{token, strings.ToUpper(token), token[4:], token + "a", token[:35], "", "sgt_", "sgt_sgt_", " " + token} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, secret string) {
		if a, err := s.Token(secret); (err == nil) != (secret == token) || err != nil && !errors.Is(err, ErrNoToken) {
			t.Errorf("%q is %v, %v", secret, a, err)
		}
		if _, _, err := s.Session(secret); !errors.Is(err, ErrNoSession) {
			t.Errorf("%q as a cookie: %v", secret, err)
		}
	})
}

// FuzzParse reads damaged files: what is accepted is written again without a change, and a
// bound account never becomes one that is not.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":1,"users":[{"name":"ann","role":"admin","domains":["example.net"],"epoch":"x","created":"2026-11-23T09:00:00Z","changed":"2026-11-23T09:00:00Z"}],"tokens":null}`))
	f.Add([]byte(`{"version":1,"users":[{"name":"ann","role":"viewer","domains":[],"epoch":"x"}]}`))
	f.Add([]byte(`{"version":1,"users":[{"name":"ann","password":"$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA","epoch":"x"}]}`))
	f.Add([]byte(`{"version":1,"tokens":[{"name":"ci","sha256":"00"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var a accountsFile
		if parse(text, &a) != nil {
			return
		}
		written, err := json.Marshal(&a)
		if err != nil {
			t.Fatal(err)
		}
		var again accountsFile
		if err := parse(written, &again); err != nil {
			t.Fatalf("%s: written as %s: %v", text, written, err)
		}
		for i, u := range a.Users {
			if (u.Domains == nil) != (again.Users[i].Domains == nil) {
				t.Errorf("%s: the binding of %s changed", text, u.Name)
			}
		}
	})
}
