package mailwhy

import "testing"

func TestFindID(t *testing.T) {
	for text, want := range map[string]string{
		"2ZFPDJSVUUAR": "2ZFPDJSVUUAR", " 2zfpdjsvuuar\n": "2ZFPDJSVUUAR", "550 5.7.1 <x@y> refused: list l; id 2ZFPDJSVUUAR": "2ZFPDJSVUUAR",
		"id=2ZFPDJSVUUAR from=<a@b>": "2ZFPDJSVUUAR", "2ZFPDJSVUUA": "", "2ZFPDJSVUUA1": "", "a@b.example": "", "": "",
	} {
		if got, ok := FindID(text); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %t", text, got, ok)
		}
	}
}
