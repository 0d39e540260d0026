package fetch

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"spamgate/internal/atomicfile"

	"aead.dev/minisign"
	"golang.org/x/crypto/blake2b"
)

// TestSignatures has good signatures of both kinds, and many that are not.
func TestSignatures(t *testing.T) {
	public, private := newKey(t)
	_, stranger := newKey(t)
	good := sign(private, listText)
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string // empty: good
	}{
		{"over a hash", signed(listText, good), ""},
		{"over the bytes", signed(listText, minisign.SignWithComments(private, []byte(listText), comment("list.txt", time.Now().Unix()), "")), ""},
		{"with CRLF", signed(listText, bytes.ReplaceAll(good, []byte("\n"), []byte("\r\n"))), ""},
		{"of another list", signed(listText, sign(private, otherText)), "do not match"},
		{"of another list, over the bytes", signed(listText, minisign.Sign(private, []byte(otherText))), "do not match"},
		{"by another key", signed(listText, sign(stranger, listText)), "it was signed with the key"},
		{"by another key with the same number", signed(listText, forge(t, public, sign(stranger, listText))), "do not match"},
		{"trusted comment changed", signed(listText, bytes.Replace(good, []byte("timestamp:"), []byte("timestamp:9"), 1)), "do not match"},
		{"cut", signed(listText, good[:len(good)-20]), "not a minisign signature"},
		{"not a signature", signed(listText, []byte("gone")), "not a minisign signature"},
		{"empty", signed(listText, nil), "not a minisign signature"},
		{"too large", signed(listText, bytes.Repeat([]byte("x"), maxSignature+1)), "not a minisign signature"},
		{"missing", func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, signatureSuffix) {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			send(listText)(w, r)
		}, "404 Not Found"},
		{"a web page", func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, signatureSuffix) {
				w.Header().Set("Content-Type", "text/html")
				return
			}
			send(listText)(w, r)
		}, "web page"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newFixture(t, c.handler)
			x.source.PublicKey = public.String()
			if c.want == "" {
				x.fetch(t)
				x.wantCopy(t, listText)
				return
			}
			x.wantFault(t, c.want, ErrSignature)
			x.handler.set(signed(otherText, sign(private, otherText)))
			x.fetch(t)
			x.handler.set(c.handler)
			x.wantFault(t, x.server.URL+"/list.txt.minisig: ", ErrSignature)
			x.wantCopy(t, otherText)
		})
	}
}

// TestEndlessSignature has a server that does not end the signature: no more than one can have is
// read.
func TestEndlessSignature(t *testing.T) {
	public, _ := newKey(t)
	synctest.Test(t, func(t *testing.T) {
		endless := stallAfter(strings.Repeat("x", maxSignature+1))
		x := newBubbleFixture(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, signatureSuffix) {
				endless(w, r)
				return
			}
			send(listText)(w, r)
		})
		x.source.PublicKey = public.String()
		x.wantFault(t, "not a minisign signature", ErrSignature)
	})
}

// forge puts the number of a key into a signature by another one.
func forge(t *testing.T, public minisign.PublicKey, text []byte) []byte {
	t.Helper()
	var s minisign.Signature
	if err := s.UnmarshalText(text); err != nil {
		t.Fatal(err)
	}
	s.KeyID = public.ID()
	forged, err := s.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return forged
}

// TestLengthTooSmall has a server that gives a length from which the list looks
// whole, and wants the signature to tell.
func TestLengthTooSmall(t *testing.T) {
	public, private := newKey(t)
	short := raw("HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n" + listText)
	x := newFixture(t, short)
	x.fetch(t)
	x.wantCopy(t, listText[:18])

	x.source.PublicKey = public.String()
	x.handler.set(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, signatureSuffix) {
			w.Write(sign(private, listText))
			return
		}
		short(w, r)
	})
	x.wantFault(t, "do not match", ErrSignature)
}

// TestHashAsList wants a hash, with the signature over it called one of the older
// kind, not to pass for a list.
func TestHashAsList(t *testing.T) {
	public, private := newKey(t)
	var s minisign.Signature
	if err := s.UnmarshalText(sign(private, listText)); err != nil {
		t.Fatal(err)
	}
	s.Algorithm = minisign.EdDSA
	text, err := s.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	hash := blake2b.Sum512([]byte(listText))
	if !minisign.Verify(public, hash[:], text) {
		t.Fatal("the attack no longer works on the library: this test and legacyMessage's check can go")
	}
	x := newFixture(t, signed(string(hash[:]), text))
	x.source.PublicKey = public.String()
	x.wantFault(t, "of minisign's older kind, which is not accepted for a list of 64 bytes", ErrSignature)
}

// TestSignatureURL wants the signature to be looked for where it should be.
func TestSignatureURL(t *testing.T) {
	public, private := newKey(t)
	for _, c := range []struct{ url, signature, want, file string }{
		{"/list.txt", "", "/list.txt.minisig", "list.txt"},
		{"/list%2Ftxt?version=1", "", "/list/txt.minisig?version=1", "txt"},
		{"/a/b%C3%BC%20cher.txt", "", "/a/b%C3%BC%20cher.txt.minisig", "bü cher.txt"},
		{"/list.txt", "/signatures/1?of=list", "/signatures/1?of=list", "list.txt"},
	} {
		var asked string
		x := newFixture(t, func(w http.ResponseWriter, r *http.Request) {
			if asked = r.URL.RequestURI(); asked == c.want {
				w.Write(signAs(private, listText, comment(c.file, time.Now().Unix())))
				return
			}
			send(listText)(w, r)
		})
		x.source.PublicKey = public.String()
		x.source.URL = x.server.URL + c.url
		if c.signature != "" {
			x.source.SignatureURL = x.server.URL + c.signature
		}
		if _, err := x.fetcher.Fetch(t.Context(), x.source); err != nil {
			t.Errorf("asked for %s, want %s: %v", asked, c.want, err)
		}
	}
}

// TestMinisign wants what minisign itself has made to be good.
func TestMinisign(t *testing.T) {
	list := testdata(t, "list.txt")
	key := testdata(t, "key.pub")
	for _, k := range []string{key, strings.ReplaceAll(key, "\n", "\r\n"), strings.Split(key, "\n")[1], "\n " + strings.Split(key, "\n")[1] + " \n"} {
		for _, signature := range []string{"list.txt.minisig", "legacy.minisig"} {
			x := newFixture(t, signed(list, []byte(testdata(t, signature))))
			x.source.PublicKey = k
			x.fetcher.now = func() time.Time { return time.Unix(1795300739, 0) } // when they were made
			x.fetch(t)
			x.wantCopy(t, list)
		}
	}
}

func testdata(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// FuzzSignature wants no text to be a good signature, but the two that are. What
// is not signed in them may change: the line ends and the untrusted comment.
func FuzzSignature(f *testing.F) {
	key, err := parsePublicKey(testdata(f, "key.pub"))
	if err != nil {
		f.Fatal(err)
	}
	list := testdata(f, "list.txt")
	var good []minisign.Signature
	for _, name := range []string{"list.txt.minisig", "legacy.minisig"} {
		text := testdata(f, name)
		var s minisign.Signature
		if err := s.UnmarshalText([]byte(text)); err != nil {
			f.Fatal(err)
		}
		good = append(good, s)
		f.Add([]byte(text))
		f.Add([]byte(text[:len(text)/2]))
	}
	f.Add([]byte("untrusted comment: \n\ntrusted comment: \n"))
	f.Add([]byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{'E'}, 74))))
	d := testDraft(f, list)
	digest := key.digest(strings.NewReader(list))
	if _, err := bytes.NewBuffer(nil).ReadFrom(digest); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := key.verify(text, digest, d); err != nil {
			return
		}
		var s minisign.Signature
		if err := s.UnmarshalText(text); err != nil || !s.Equal(good[0]) && !s.Equal(good[1]) {
			t.Errorf("%q passes", text)
		}
	})
}

// FuzzPublicKey wants a key that is read to be read again from its own text.
func FuzzPublicKey(f *testing.F) {
	f.Add(testdata(f, "key.pub"))
	f.Add("RWQ=")
	f.Add("untrusted comment: \n")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := parsePublicKey(text)
		if err != nil {
			return
		}
		if again, err := parsePublicKey(key.String()); err != nil || !again.Equal(key.PublicKey) {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// testDraft is a draft that holds a text.
func testDraft(t testing.TB, text string) *draft {
	t.Helper()
	d, err := newDraft(atomicfile.In(t.TempDir()), "copy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.discard)
	if _, err := d.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return d
}
