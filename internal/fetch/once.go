package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
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
	known, _ := loadState(s) // empty on an error
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout,
		fmt.Errorf("it was not complete after %v: set a longer timeout if the server is that slow", s.Timeout))
	defer cancel()

	f.removeStale(s)
	res, err := f.get(ctx, s, s.URL, known)
	if err != nil {
		return known, false, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotModified {
		if known.SHA256 == "" {
			return known, false, errors.New("the server answered 304 Not Modified to a request without conditions: it, or a proxy, is at fault")
		}
		known.Checked = time.Now()
		f.save(s, known)
		return known, true, nil
	}
	now, err = f.replace(ctx, s, res, key, signatureURL, known.Instead)
	if errors.Is(err, errReplaced) {
		known.ETag, known.LastModified = res.Header.Get("ETag"), res.Header.Get("Last-Modified")
		known.Checked = time.Now()
		f.save(s, known)
		return known, true, nil
	}
	if err != nil {
		return known, false, err
	}
	f.save(s, now)
	return now, false, nil
}

// errReplaced means that the server still has the version that ReplaceCopy replaced.
var errReplaced = errors.New("the version that was replaced")

// replace makes the body of a response the copy, unless its sum is replaced.
func (f *Fetcher) replace(ctx context.Context, s Source, res *http.Response, key *publicKey, signatureURL, replaced string) (state, error) {
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
	if key != nil {
		if err := f.checkSignature(ctx, s, signatureURL, key, body, d); err != nil {
			return state{}, err
		}
	}
	if replaced != "" && d.sum() == replaced {
		return state{}, errReplaced
	}
	modified, err := d.commit()
	if err != nil {
		return state{}, err
	}
	checked := time.Now()
	return state{
		URL:          s.URL,
		PublicKey:    key.String(),
		ETag:         res.Header.Get("ETag"),
		LastModified: res.Header.Get("Last-Modified"),
		Fetched:      checked,
		Checked:      checked,
		Bytes:        d.size,
		SHA256:       d.sum(),
		Modified:     modified,
	}, nil
}

// checkSignature fetches the signature of a draft and checks it.
func (f *Fetcher) checkSignature(ctx context.Context, s Source, url string, key *publicKey, digest io.Reader, d *draft) error {
	text, err := f.signature(ctx, s, url)
	if err == nil {
		err = key.verify(text, digest, d)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrSignature, shownURL(url), err)
	}
	return nil
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
	text, err := io.ReadAll(io.LimitReader(res.Body, maxSignature+1))
	if err != nil {
		return nil, bodyError(ctx, err)
	}
	if len(text) > maxSignature {
		return nil, errNoSignature
	}
	return text, nil
}

// save saves the state of the copy. If that fails the copy is still valid, and the next
// fetch is unconditional.
func (f *Fetcher) save(s Source, now state) {
	if err := now.save(s); err != nil {
		f.log.Warn("state of a list's copy not saved, the next fetch will be complete", "list", s.Name, "error", err)
	}
}
