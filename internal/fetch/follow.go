package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	"aead.dev/minisign"

	"spamgate/internal/rcs"
)

// A publisher whose signatures name the sum of the list saves most of the transfer. The
// signature alone shows whether there is a new version, and which; patches lead there, of which
// each version names its own (package rcs). What they make is checked as a whole list is. Lists
// without such a signature are fetched as a whole: nothing else shows where patches are to lead.

// errTransfer means that the whole list has to be fetched.
var errTransfer = errors.New("the patches do not lead to the new version")

// maxPatches bounds the patches that lead from a copy to the new version.
const maxPatches = 64

// follow brings the copy up to date by the signature of a list. The error is errTransfer if
// the whole list has to be fetched for that.
func (f *Fetcher) follow(ctx context.Context, s Source, key *publicKey, signatureURL string, known state) (current state, notModified bool, err error) {
	signed, err := f.signature(ctx, s, signatureURL, condition{etag: known.Signature, prefer: preferNow})
	if err != nil {
		return known, false, signatureError(signatureURL, err)
	}
	if signed.notModified {
		return f.confirmed(s, known)
	}
	if sum := signed.sum(); sum != "" && sum == known.SignatureSum {
		// It was verified when it came. A mirror that sends it again could have the whole copy read each time.
		known.Signature, known.Waits = signed.etag, signed.waits
		return f.confirmed(s, known)
	}
	says, err := signed.says()
	switch {
	case err != nil || says.SHA256 == "":
		return known, false, errTransfer // which says what is wrong
	case says.SHA256 == known.Instead:
		return f.confirmed(s, known)
	case says.SHA256 == known.SHA256:
		return f.signedAgain(s, key, signed, signatureURL, known)
	}
	d, err := f.throughPatches(ctx, s, known, says.SHA256)
	if err != nil {
		if ctx.Err() != nil {
			return known, false, bodyError(ctx, err)
		}
		f.log.Debug("whole list fetched in place of its changes", "list", s.Name, "error", withoutSecrets(err))
		return known, false, errTransfer
	}
	defer d.discard()
	current = known.next(s, key, d)
	if err := checkContent(d); err != nil {
		return known, false, err
	}
	digest, err := digestOf(d.reader())
	if err != nil {
		return known, false, err
	}
	if err := f.checkSignature(s, key, signed, digest, d, known, &current); err != nil {
		return known, false, signatureError(signatureURL, err)
	}
	if err := d.install(known, &current); err != nil {
		return known, false, err
	}
	f.save(s, current)
	return current, false, nil
}

// signedAgain takes a new signature of the copy.
func (f *Fetcher) signedAgain(s Source, key *publicKey, signed signature, signatureURL string, known state) (state, bool, error) {
	tree, name := s.place()
	file, err := tree.Open(name)
	if err != nil {
		return known, false, err
	}
	defer file.Close()
	digest, err := digestOf(file)
	if err != nil {
		return known, false, err
	}
	current := known
	if err := f.checkSignature(s, key, signed, digest, nil, known, &current); err != nil {
		return known, false, signatureError(signatureURL, err)
	}
	return f.confirmed(s, current)
}

// digestOf returns the reader from which a whole list was read.
func digestOf(list io.Reader) (io.Reader, error) {
	digest := minisign.NewReader(list)
	_, err := io.Copy(io.Discard, digest)
	return digest, err
}

// throughPatches makes the version with a sum of the copy.
func (f *Fetcher) throughPatches(ctx context.Context, s Source, known state, want string) (*draft, error) {
	tree, name := s.place()
	file, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	old, left := io.NewSectionReader(file, 0, known.Bytes), min(known.Bytes, s.MaxBytes) // more is no gain
	var before *draft
	for range maxPatches {
		d, size, err := f.throughPatch(ctx, s, old, left)
		if before != nil {
			before.discard()
		}
		if err != nil {
			return nil, err
		}
		if d.sum() == want {
			return d, nil
		}
		before, old, left = d, d.reader(), left-size
	}
	before.discard()
	return nil, errTransfer
}

// throughPatch makes the version that follows an old one, and returns the size of the patch,
// which is not larger than most.
func (f *Fetcher) throughPatch(ctx context.Context, s Source, old *io.SectionReader, most int64) (made *draft, size int64, err error) {
	target, err := s.patchURL(rcs.Path(old))
	if err != nil {
		return nil, 0, err
	}
	res, err := f.get(ctx, s, target, condition{})
	if err != nil {
		return nil, 0, err
	}
	defer res.Body.Close()
	if err := checkHead(res, most); err != nil {
		return nil, 0, err
	}
	d, err := newDraft(s.place())
	if err != nil {
		return nil, 0, err
	}
	body := &meter{w: io.Discard, add: func(int64) {}}
	script, err := rcs.Script(io.TeeReader(io.LimitReader(res.Body, most), body))
	if err == nil {
		err = rcs.Apply(d, old, script, s.MaxBytes)
	}
	if err != nil {
		d.discard()
		return nil, 0, err
	}
	return d, body.done, nil
}

// patchURL returns the URL of a patch. Its path is relative to the list's: a list cannot make the
// gate ask other servers.
func (s Source) patchURL(path string) (string, error) {
	list, err := url.Parse(s.URL)
	if err != nil {
		return "", err
	}
	ref, err := url.Parse(path)
	if err != nil || path == "" || ref.IsAbs() || ref.Host != "" || ref.RawQuery != "" {
		return "", fmt.Errorf("the list names no patch of its own: %.80q", path)
	}
	target := list.ResolveReference(ref)
	target.RawQuery, target.Fragment = list.RawQuery, "" // which may have a token
	return target.String(), nil
}
