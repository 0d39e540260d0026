package fetch

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"spamgate/internal/atomicfile"
	"spamgate/internal/text"
)

// Defaults of a [Source].
const (
	DefaultRefresh  = time.Hour
	DefaultTimeout  = 5 * time.Minute
	DefaultMaxBytes = 256 << 20
)

// Source is a list that comes from a URL.
type Source struct {
	// Name is the unique name of the list, for log and errors.
	Name string

	// URL is an https URL, or with AllowHTTP an http one.
	URL       string
	AllowHTTP bool

	// RootCAs are the authorities for its servers; nil means those of the Fetcher.
	RootCAs *x509.CertPool

	// PublicKey is a minisign public key, the base64 line or the whole text of its
	// file. If it is set, only signed content replaces the copy. SignatureURL is the
	// URL of the signature; empty means URL with ".minisig" appended to its path.
	PublicKey, SignatureURL string

	// SignedFile is the name of the list's file that the signature has to confirm;
	// empty means the last element of URL's path.
	SignedFile string

	// Force permits a version that was signed before the copy, or that does not end in
	// a newline as the copy does. The fetch is unconditional.
	Force bool

	// Refresh is the time between two fetches, Timeout the limit for one fetch with
	// its signature; 0 means [DefaultRefresh] and [DefaultTimeout].
	Refresh, Timeout time.Duration

	// MaxBytes is the largest size, as it is sent; 0 means [DefaultMaxBytes].
	MaxBytes int64

	// Copy is the absolute path of the copy. Its directory is made if it is missing.
	// Copy+".json" holds the state of the copy for the next fetch.
	Copy string

	// StateDir is a directory at or below which Copy is. Nothing on the path from
	// there may be a symbolic link (see [atomicfile.Tree]). Empty means the directory of
	// Copy.
	StateDir string
}

// place returns the directory of the copy, and its name in there.
func (s Source) place() (tree atomicfile.Tree, name string) {
	tree = atomicfile.In(s.StateDir)
	name, ok := tree.Name(s.Copy)
	if s.StateDir == "" || !ok {
		return atomicfile.In(filepath.Dir(s.Copy)), filepath.Base(s.Copy)
	}
	return tree, name
}

func (s Source) withDefaults() Source {
	s.Refresh = cmp.Or(s.Refresh, DefaultRefresh)
	s.Timeout = cmp.Or(s.Timeout, DefaultTimeout)
	s.MaxBytes = cmp.Or(s.MaxBytes, DefaultMaxBytes)
	return s
}

// same reports whether the sources are equal. Their authorities are equal if the
// certificates are, though they were read again.
func (s Source) same(t Source) bool {
	sameRoots := s.RootCAs.Equal(t.RootCAs)
	s.RootCAs, t.RootCAs = nil, nil
	return sameRoots && s == t
}

// Check checks the source.
func (s Source) Check() error {
	_, _, err := s.parse()
	if err == nil && !filepath.IsAbs(s.Copy) {
		err = fmt.Errorf("the copy %q is not an absolute path", s.Copy)
	}
	if err != nil {
		return &SourceError{Name: s.Name, URL: s.ShownURL(), Err: err}
	}
	return nil
}

// parse parses the key (nil if there is none) and the URL of the signature.
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
		return nil, "", fmt.Errorf("signature_url %s %w", text.ShownURL(s.SignatureURL), err)
	}
	return key, s.SignatureURL, nil
}

// parseURL parses a URL. The error completes a sentence that begins with the URL.
func (s Source) parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return nil, errors.New("is not one that a list can be fetched from: write https://host/path")
	case u.Scheme == "http" && !s.AllowHTTP:
		return nil, errors.New("has no TLS, so anyone on the path can change the list: use https, or set allow_http = true")
	}
	return u, nil
}

// SourceError says which list could not be fetched, from which URL and why.
type SourceError struct {
	Name, URL string
	Err       error
}

func (e *SourceError) Error() string {
	return fmt.Sprintf("list %q from %s: %v", e.Name, e.URL, e.Err)
}

func (e *SourceError) Unwrap() error { return e.Err }

// ShownURL returns the URL for log and errors, without passwords and tokens.
func (s Source) ShownURL() string { return text.ShownURL(s.URL) }

// withoutSecrets returns an error whose text has no passwords and tokens of URLs.
func withoutSecrets(err error) error {
	if shown := text.HideSecrets(err.Error()); shown != err.Error() {
		return &hiding{err, shown}
	}
	return err
}

// hiding is an error with another text.
type hiding struct {
	error
	text string
}

func (h *hiding) Error() string { return h.text }
func (h *hiding) Unwrap() error { return h.error }
