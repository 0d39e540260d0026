package fetch

import (
	"context"
	"errors"
	"io"
	"net/url"

	"aead.dev/minisign"

	"spamgate/internal/delta"
)

// A publisher whose signatures name the sum of the list saves most of the transfer. The
// signature alone shows whether there is a new version, and which; deltas lead there from the
// sum of the copy. What they make is checked as a whole list is.

// errTransfer means that the whole list has to be fetched.
var errTransfer = errors.New("the deltas do not lead to the new version")

// deltaSuffix is appended to the path of a list's URL. Below it, each delta has the sum of the
// version that it is for as its name.
const deltaSuffix = ".delta/"

// maxDeltas bounds the deltas that lead from a copy to the new version.
const maxDeltas = 64

// follow brings the copy up to date by the signature of a list. The error is errTransfer if
// the whole list has to be fetched for that.
func (f *Fetcher) follow(ctx context.Context, s Source, key *publicKey, signatureURL string, known state) (now state, notModified bool, err error) {
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
	d, err := f.throughDeltas(ctx, s, known, says.SHA256)
	if err != nil {
		if ctx.Err() != nil {
			return known, false, bodyError(ctx, err)
		}
		f.log.Debug("whole list fetched in place of its changes", "list", s.Name, "error", withoutSecrets(err))
		return known, false, errTransfer
	}
	defer d.discard()
	now = known.next(s, key, d)
	if err := checkContent(d); err != nil {
		return known, false, err
	}
	digest, err := digestOf(d.reader())
	if err != nil {
		return known, false, err
	}
	if err := f.checkSignature(s, key, signed, digest, d, known, &now); err != nil {
		return known, false, signatureError(signatureURL, err)
	}
	if err := d.install(known, &now); err != nil {
		return known, false, err
	}
	f.save(s, now)
	return now, false, nil
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
	now := known
	if err := f.checkSignature(s, key, signed, digest, nil, known, &now); err != nil {
		return known, false, signatureError(signatureURL, err)
	}
	return f.confirmed(s, now)
}

// digestOf returns the reader from which a whole list was read.
func digestOf(list io.Reader) (io.Reader, error) {
	digest := minisign.NewReader(list)
	_, err := io.Copy(io.Discard, digest)
	return digest, err
}

// throughDeltas makes the version with a sum of the copy.
func (f *Fetcher) throughDeltas(ctx context.Context, s Source, known state, want string) (*draft, error) {
	tree, name := s.place()
	file, err := tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var old io.ReadSeeker = file
	sum, left := known.SHA256, min(known.Bytes, s.MaxBytes) // more is no gain
	var before *draft
	for range maxDeltas {
		d, size, err := f.throughDelta(ctx, s, old, sum, left)
		if before != nil {
			before.discard()
		}
		if err != nil {
			return nil, err
		}
		if sum, left = d.sum(), left-size; sum == want {
			return d, nil
		}
		before, old = d, d.reader()
	}
	before.discard()
	return nil, errTransfer
}

// throughDelta makes the version that follows one with a sum, and returns the size of the
// delta, which is not larger than most.
func (f *Fetcher) throughDelta(ctx context.Context, s Source, old io.ReadSeeker, sum string, most int64) (made *draft, size int64, err error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, 0, err
	}
	u.Path, u.RawPath = u.Path+deltaSuffix+sum, ""
	res, err := f.get(ctx, s, u.String(), condition{})
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
	if err := delta.Apply(d, old, io.TeeReader(io.LimitReader(res.Body, most), body), s.MaxBytes); err != nil {
		d.discard()
		return nil, 0, err
	}
	return d, body.done, nil
}
