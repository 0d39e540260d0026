package fetch

import (
	"net/http"
	"testing"

	"golang.org/x/net/http/httpguts"
)

// FuzzParseState wants what is sent to servers to be valid there.
func FuzzParseState(f *testing.F) {
	f.Add([]byte(`{"url":"https://lists.example/a","etag":"\"x\"","bytes":7,"sha256":"00","fetched":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"etag":"a\r\nHost: evil.example","sequence":-1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		st, err := parseState(text)
		if err != nil {
			return
		}
		h := http.Header{"If-None-Match": {st.ETag}, "If-Modified-Since": {st.LastModified}}
		for _, value := range []string{h.Get("If-None-Match"), h.Get("If-Modified-Since"), st.Signature} {
			if !httpguts.ValidHeaderFieldValue(value) {
				t.Errorf("%q", value)
			}
		}
		if st.Sequence < 0 || st.Bytes < 0 {
			t.Errorf("got %+v", st)
		}
	})
}
