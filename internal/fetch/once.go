package fetch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"aead.dev/minisign"

	"spamgate/internal/text"
)

// fetch fetches a source and returns the state of its copy, also with an error.
func (f *Fetcher) fetch(ctx context.Context, s Source) (current state, notModified bool, err error) {
	if err := s.Check(); err != nil {
		return state{}, false, errors.Unwrap(err)
	}
	key, signatureURL, err := s.parse()
	if err != nil {
		return state{}, false, err
	}
	known, _ := loadState(s) // on an error only what still counts
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout,
		fmt.Errorf("it was not complete after %v: set a longer timeout if the server is that slow", s.Timeout))
	defer cancel()

	f.removeStale(s)
	if known.Named && !s.Force {
		switch current, notModified, err := f.follow(ctx, s, key, signatureURL, known); {
		case !errors.Is(err, errTransfer):
			return current, notModified, err
		default:
			known.ETag, known.LastModified = "", "" // the list is another one
		}
	}
	return f.transfer(ctx, s, key, signatureURL, known)
}

// transfer fetches the whole list. While a publisher replaces it and its signature, the two
// may not fit for a moment.
func (f *Fetcher) transfer(ctx context.Context, s Source, key *publicKey, signatureURL string, known state) (current state, notModified bool, err error) {
	for i := range maxMoments {
		current, notModified, err = f.transferOnce(ctx, s, key, signatureURL, known)
		if !errors.Is(err, errMoment) || !pause(ctx, leastWait<<i) {
			break
		}
	}
	return current, notModified, err
}

// maxMoments is how often a list is fetched because its signature is already that of
// another version.
const maxMoments = 3

// errMoment means that a list was replaced while it was fetched.
var errMoment = errors.New("the publisher has replaced the list and its signature at this moment")

func (f *Fetcher) transferOnce(ctx context.Context, s Source, key *publicKey, signatureURL string, known state) (current state, notModified bool, err error) {
	unless := condition{etag: known.ETag, lastModified: known.LastModified}
	if s.Force {
		unless, known.Instead = condition{}, ""
	}
	res, err := f.get(ctx, s, s.URL, unless)
	if err != nil {
		return known, false, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotModified {
		if unless == (condition{}) {
			return known, false, errors.New("the server answered 304 Not Modified to a request without conditions: it, or a proxy, is at fault")
		}
		return f.confirmed(s, known)
	}
	current, err = f.replace(ctx, s, res, key, signatureURL, known)
	switch {
	case errors.Is(err, errReplaced):
		known.ETag, known.LastModified, known.Signed, known.Sequence = current.ETag, current.LastModified, current.Signed, current.Sequence
		return f.confirmed(s, known)
	case errors.Is(err, ErrTorn) && current.Torn != known.Torn:
		known.Torn = current.Torn
		f.save(s, known)
		return known, false, err
	case err != nil:
		return known, false, err
	}
	f.save(s, current)
	return current, false, nil
}

// confirmed saves that the server has confirmed the copy. It returns an error if the copy
// has expired.
func (f *Fetcher) confirmed(s Source, known state) (state, bool, error) {
	if err := expired(known.Expires, f.now()); err != nil && known.Instead == "" {
		return known, false, err
	}
	known.Checked = time.Now()
	f.save(s, known)
	return known, true, nil
}

// errReplaced means that the server still has the version that ReplaceCopy replaced.
var errReplaced = errors.New("the version that was replaced")

// replace makes the body of a response the copy, unless its sum is that of the version
// that ReplaceCopy has replaced. It returns the state of the new copy, and with some errors
// what is to be known of it.
func (f *Fetcher) replace(ctx context.Context, s Source, res *http.Response, key *publicKey, signatureURL string, known state) (state, error) {
	if err := checkHead(res, s.MaxBytes); err != nil {
		return state{}, err
	}
	d, err := newDraft(s.place())
	if err != nil {
		return state{}, err
	}
	defer d.discard()
	body, length := key.digest(res.Body), res.ContentLength
	if res.Uncompressed {
		length = -1 // it is that of the packed body
	}
	if err := f.receive(ctx, s, body, length, d); err != nil {
		return state{}, err
	}
	current := known.next(s, key, d)
	if key != nil || endKnown(res) {
		current.ETag, current.LastModified = res.Header.Get("ETag"), lastModified(res.Header)
	}
	if err := checkContent(d); err != nil {
		return state{}, err
	}
	if key != nil {
		var signed signature
		if signed, err = f.signature(ctx, s, signatureURL, condition{prefer: preferNow}); err == nil {
			err = f.checkSignature(s, key, signed, body, d, known, &current)
		}
		err = signatureError(signatureURL, err)
	} else if err = s.checkWhole(known, d, endKnown(res)); errors.Is(err, ErrTorn) && endKnown(res) {
		current.Torn = current.SHA256
	}
	if err != nil {
		return current, err
	}
	return current, d.install(known, &current)
}

// next returns the state of a draft that is to be the next copy.
func (st state) next(s Source, key *publicKey, d *draft) state {
	return state{URL: s.URL, PublicKey: key.String(), Bytes: d.size, SHA256: d.sum(), Signed: st.Signed, Sequence: st.Sequence}
}

// install makes the draft the copy, and completes its state.
func (d *draft) install(known state, current *state) (err error) {
	if known.Instead != "" && current.SHA256 == known.Instead {
		return errReplaced
	}
	if current.Modified, err = d.commit(); err != nil {
		return err
	}
	current.Fetched = time.Now()
	current.Checked = current.Fetched
	return nil
}

// checkSignature checks the signature of a list. Digest is the reader that the whole list was
// read from, and d is the list if it is not the copy. What the signature says becomes part of
// the state now.
func (f *Fetcher) checkSignature(s Source, key *publicKey, signed signature, digest io.Reader, d *draft, known state, current *state) error {
	comment, err := key.verify(signed.text, digest, d)
	if err != nil {
		if says, _ := signed.says(); says.SHA256 != "" && says.SHA256 != current.SHA256 {
			return fmt.Errorf("%w: %w", errMoment, err)
		}
		return err
	}
	c, err := s.checkComment(comment, known, f.now())
	if err != nil {
		return err
	}
	current.Signed, current.Expires = c.Timestamp, c.Expires
	if c.Sequence != 0 {
		current.Sequence = c.Sequence
	}
	current.Named, current.Signature, current.SignatureSum, current.Waits = false, "", "", false
	if c.SHA256 == current.SHA256 {
		current.Named, current.Signature, current.SignatureSum, current.Waits = true, signed.etag, signed.sum(), signed.waits
	}
	return nil
}

// signatureError returns an ErrSignature, or an ErrOlder, with the URL of the signature.
func signatureError(url string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrOlder):
		return fmt.Errorf("%s: %w", text.ShownURL(url), err)
	}
	return fmt.Errorf("%w: %s: %w", ErrSignature, text.ShownURL(url), err)
}

// signature is the answer of a server with a signature.
type signature struct {
	text  []byte
	etag  string
	waits bool // the server can wait for a new one

	notModified bool // nothing else is set
}

// says returns what the trusted comment says, before anybody has checked the signature.
func (s signature) says() (trusted, error) {
	var text minisign.Signature
	if err := text.UnmarshalText(s.text); err != nil {
		return trusted{}, errNoSignature
	}
	return parseComment(text.TrustedComment)
}

// sum returns the sum of all that the key has signed in a signature, so without the untrusted
// comment, which a mirror can change. It is empty if this is not a signature.
func (s signature) sum() string {
	var signed minisign.Signature
	if signed.UnmarshalText(s.text) != nil {
		return ""
	}
	signed.UntrustedComment = ""
	text, err := signed.MarshalText()
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// signature fetches the signature at a URL.
func (f *Fetcher) signature(ctx context.Context, s Source, url string, unless condition) (signature, error) {
	res, err := f.get(ctx, s, url, unless)
	if err != nil {
		return signature{}, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotModified {
		return signature{notModified: true}, nil
	}
	if err := checkHead(res, maxSignature); err != nil {
		return signature{}, err
	}
	content, err := io.ReadAll(io.LimitReader(res.Body, maxSignature+1))
	if err != nil {
		return signature{}, bodyError(ctx, err)
	}
	if len(content) > maxSignature {
		return signature{}, errNoSignature
	}
	return signature{text: content, etag: res.Header.Get("ETag"), waits: canWait(res.Header)}, nil
}

// save saves the state of the copy. If that fails the copy is still valid, and the next
// fetch is unconditional.
func (f *Fetcher) save(s Source, current state) {
	if err := current.save(s); err != nil {
		f.log.Warn("state of a list's copy not saved, the next fetch will be complete", "list", s.Name, "error", err)
	}
}
