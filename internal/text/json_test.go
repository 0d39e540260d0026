package text

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestDecodeJSON(t *testing.T) {
	type body struct {
		List string
		Sub  []struct{ A, B int }
		K    int
	}
	for text, want := range map[string]string{
		`{"list":"a","sub":[{"a":1,"b":2},{"a":3}],"k":1}`: "",
		`{}`: "", "null": "", ` {"list":"list"} `: "",
		`{"sub":[{"a":1},{"a":1}],"list":"sub"}`: "",
		`{"list":"a","list":"b"}`:                `the key "list" stands there twice`,
		`{"list":"a","LIST":"a"}`:                `the key "LIST" stands there twice`,
		`{"list":"a","li\u0073t":"a"}`:           `the key "list" stands there twice`,
		`{"list":"a","li` + "\u017f" + `t":"a"}`: `stands there twice`,
		`{"k":1,"` + "\u212a" + `":2}`:           `stands there twice`,
		`{"sub":[{"a":1},{"b":1,"a":2,"b":3}]}`:  `the key "b" stands there twice`,
		`{"sub":[{"a":1}],"list":"a","sub":[]}`:  `the key "sub" stands there twice`,
		`{"list":"a"} {}`:                        "something follows",
		`{"list":"a"}]`:                          "something follows",
		`{"other":1}`:                            "unknown field",
		`{"list":`:                               "unexpected EOF",
		``:                                       "EOF",
	} {
		var b body
		err := DecodeJSON(strings.NewReader(text), &b)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if text == "" && !errors.Is(err, io.EOF) {
			t.Errorf("nothing: %v", err)
		}
	}
}
