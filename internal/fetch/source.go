package fetch

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"spamgate/internal/durable"
)

// Defaults of a [Source].
const (
	DefaultRefresh  = time.Hour
	DefaultTimeout  = 5 * time.Minute
	DefaultMaxBytes = 256 << 20
)

// Source is a list that comes from a URL.
type Source struct {
	// Name is the list's, unique, for log and errors.
	Name string

	// URL is an https URL, or with AllowHTTP an http one.
	URL       string
	AllowHTTP bool

	// RootCAs is who may vouch for its servers; nil: the Fetcher's.
	RootCAs *x509.CertPool

	// PublicKey is a minisign public key, the base64 line or the whole text of
	// its file. With it, only what is signed replaces the copy. SignatureURL is
	// where the signature is; empty: at URL with ".minisig" behind its path.
	PublicKey, SignatureURL string

	// Refresh is the time between two fetches, Timeout how long one may take,
	// the signature's included; 0: [DefaultRefresh], [DefaultTimeout].
	Refresh, Timeout time.Duration

	// MaxBytes is the largest list, as it is sent; 0: [DefaultMaxBytes].
	MaxBytes int64

	// Copy is the file to keep, an absolute path. Its directory is made where it
	// is missing. Beside it is Copy+".json", from which the next fetch knows what
	// the copy is.
	Copy string

	// StateDir is the directory that Copy is in, perhaps some directories below:
	// nothing on the way from there may be a symbolic link (see [durable.Tree]).
	// Empty is the directory of Copy.
	StateDir string
}

// place returns the directory that the copy is in, and the name of the copy there.
func (s Source) place() (tree durable.Tree, name string) {
	tree = durable.In(s.StateDir)
	name, ok := tree.Name(s.Copy)
	if s.StateDir == "" || !ok {
		return durable.In(filepath.Dir(s.Copy)), filepath.Base(s.Copy)
	}
	return tree, name
}

func (s Source) withDefaults() Source {
	s.Refresh = cmp.Or(s.Refresh, DefaultRefresh)
	s.Timeout = cmp.Or(s.Timeout, DefaultTimeout)
	s.MaxBytes = cmp.Or(s.MaxBytes, DefaultMaxBytes)
	return s
}

// same reports whether nothing is different. Who may vouch is the same where the
// certificates are, though they were read again.
func (s Source) same(t Source) bool {
	sameRoots := s.RootCAs.Equal(t.RootCAs)
	s.RootCAs, t.RootCAs = nil, nil
	return sameRoots && s == t
}

// Check says what is wrong with the source; nil if nothing is.
func (s Source) Check() error {
	_, _, err := s.parse()
	if err == nil && !filepath.IsAbs(s.Copy) {
		err = fmt.Errorf("the copy %q is no absolute path", s.Copy)
	}
	if err != nil {
		return &SourceError{Name: s.Name, URL: s.ShownURL(), Err: err}
	}
	return nil
}

// parse reads what is text: the key (nil if there is none) and the place of the
// signature.
func (s Source) parse() (key *publicKey, signature string, err error) {
	u, err := s.parseURL(s.URL)
	if err != nil {
		return nil, "", fmt.Errorf("the URL %w", err)
	}
	if s.PublicKey == "" {
		return nil, "", nil
	}
	if key, err = parsePublicKey(s.PublicKey); err != nil {
		return nil, "", err
	}
	if s.SignatureURL == "" {
		u.Path, u.RawPath = u.Path+signatureSuffix, ""
		return key, u.String(), nil
	}
	if _, err := s.parseURL(s.SignatureURL); err != nil {
		return nil, "", fmt.Errorf("signature_url %s %w", shownURL(s.SignatureURL), err)
	}
	return key, s.SignatureURL, nil
}

// parseURL reads a URL. The error completes a sentence that begins with it.
func (s Source) parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, errors.New("is none that a list can be fetched from: write https://host/path")
	case u.Scheme == "http" && !s.AllowHTTP:
		return nil, errors.New("is without TLS, so that anyone on the way can change the list: use https, or set allow_http = true")
	}
	return u, nil
}

// SourceError says which list could not be fetched, from where and why.
type SourceError struct {
	Name, URL string
	Err       error
}

func (e *SourceError) Error() string {
	return fmt.Sprintf("list %q from %s: %v", e.Name, e.URL, e.Err)
}

func (e *SourceError) Unwrap() error { return e.Err }

// ShownURL returns the URL as log and errors show it: without what may be a password
// or a token.
func (s Source) ShownURL() string { return shownURL(s.URL) }

// shownURL returns a URL as it is shown: without the parts that hold passwords and
// tokens.
func shownURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "the URL"
	}
	return shown(u)
}

func shown(u *url.URL) string {
	v := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, Opaque: u.Opaque}
	if u.RawQuery != "" {
		return v.String() + "?..."
	}
	return v.String()
}
