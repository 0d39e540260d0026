package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"spamgate/internal/text"
)

// fetch fetches a source and returns the state of its copy, also with an error.
func (f *Fetcher) fetch(ctx context.Context, s Source) (now state, notModified bool, err error) {
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
	condition := known
	if s.Force {
		condition, known.Instead = state{}, ""
	}
	res, err := f.get(ctx, s, s.URL, condition)
	if err != nil {
		return known, false, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotModified {
		if condition.SHA256 == "" {
			return known, false, errors.New("the server answered 304 Not Modified to a request without conditions: it, or a proxy, is at fault")
		}
		known.Checked = time.Now()
		f.save(s, known)
		return known, true, nil
	}
	now, err = f.replace(ctx, s, res, key, signatureURL, known)
	switch {
	case errors.Is(err, errReplaced):
		known.ETag, known.LastModified, known.Signed = now.ETag, now.LastModified, now.Signed
		known.Checked = time.Now()
		f.save(s, known)
		return known, true, nil
	case errors.Is(err, ErrTorn) && now.Torn != known.Torn:
		known.Torn = now.Torn
		f.save(s, known)
		return known, false, err
	case err != nil:
		return known, false, err
	}
	f.save(s, now)
	return now, false, nil
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
	body := key.digest(res.Body)
	if err := f.receive(ctx, s, body, res.ContentLength, d); err != nil {
		return state{}, err
	}
	now := state{URL: s.URL, PublicKey: key.String(), Bytes: d.size, SHA256: d.sum(), Signed: known.Signed}
	if key != nil || endKnown(res) {
		now.ETag, now.LastModified = res.Header.Get("ETag"), res.Header.Get("Last-Modified")
	}
	if err := checkContent(d); err != nil {
		return state{}, err
	}
	if key != nil {
		now.Signed, err = f.checkSignature(ctx, s, signatureURL, key, body, d, known.Signed)
	} else if err = s.checkWhole(known, d, endKnown(res)); errors.Is(err, ErrTorn) && endKnown(res) {
		now.Torn = now.SHA256
	}
	switch {
	case err != nil:
		return now, err
	case known.Instead != "" && now.SHA256 == known.Instead:
		return now, errReplaced
	}
	if now.Modified, err = d.commit(); err != nil {
		return state{}, err
	}
	now.Fetched = time.Now()
	now.Checked = now.Fetched
	return now, nil
}

// checkSignature fetches the signature of a draft and checks it. It returns the time when it
// was made, which must not be before last.
func (f *Fetcher) checkSignature(ctx context.Context, s Source, url string, key *publicKey, digest io.Reader, d *draft, last int64) (made int64, err error) {
	signature, err := f.signature(ctx, s, url)
	comment := ""
	if err == nil {
		comment, err = key.verify(signature, digest, d)
	}
	if err == nil {
		made, err = s.checkComment(comment, last, f.now())
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrSignature, text.ShownURL(url), err)
	}
	return made, nil
}

func (f *Fetcher) signature(ctx context.Context, s Source, url string) ([]byte, error) {
	res, err := f.get(ctx, s, url, state{})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if err := checkHead(res, maxSignature); err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(res.Body, maxSignature+1))
	if err != nil {
		return nil, bodyError(ctx, err)
	}
	if len(content) > maxSignature {
		return nil, errNoSignature
	}
	return content, nil
}

// save saves the state of the copy. If that fails the copy is still valid, and the next
// fetch is unconditional.
func (f *Fetcher) save(s Source, now state) {
	if err := now.save(s); err != nil {
		f.log.Warn("state of a list's copy not saved, the next fetch will be complete", "list", s.Name, "error", err)
	}
}
