package proof

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"spamgate/blocklist/verdict"
	"spamgate/smtpfilter"
	"spamgate/smtpfilter/header"
)

const (
	// keysTimeout bounds what a message waits for the keys of its signatures, from the end
	// of its header on. A next hop waits minutes for the rest of a message (RFC 5321,
	// section 4.5.3.2.5).
	keysTimeout = 5 * time.Second

	// maxHeader is the longest header that is verified, in bytes: it stays in memory until
	// the message ends. [headers] max_bytes is a quarter of it by default.
	maxHeader = 1 << 20

	// The library reads all fields for each name that a signature covers, copies a field
	// for each of its lines, and copies white space of the body each time it gets more.
	// So a hostile message costs the square of its length, without these bounds. A usual
	// one has 100 fields and 30 names.
	maxPicks  = 100_000  // fields times names
	maxRead   = 64 << 20 // bytes of the header times names, over all signatures
	maxCopied = 64 << 20 // bytes, over all fields and signatures
	maxWhite  = 16 << 10 // bytes of white space in a row in the body
)

// The errors of messages that are too expensive to verify.
var (
	errLongHeader = errors.New("the header is too long to verify")
	errExpensive  = errors.New("the header has too many lines to verify")
	errWhite      = errors.New("the body has too many blank lines to verify")
	errNoEnd      = errors.New("the header does not end")
)

// verification implements smtpfilter.Verification.
type verification struct {
	proofs  *Proofs
	ctx     context.Context
	cancel  context.CancelFunc
	domains []string

	header   []byte // as far as it was read
	inBody   bool
	refused  error // why nothing is verified
	white    int   // bytes of white space at the end of what was read of the body
	running  sync.WaitGroup
	pipes    []*pipe
	verified []verdict.Signature // its elements are set by the verifiers
	ended    bool
}

// Verify begins to verify the signatures of a message by some domains, in normal form. It
// implements smtpfilter.SignatureVerifier.
func (p *Proofs) Verify(ctx context.Context, domains []string) smtpfilter.Verification {
	v := &verification{proofs: p, domains: domains}
	v.ctx, v.cancel = context.WithCancel(ctx)
	return v
}

// Write takes a piece of the message. It waits while maxWaiting pieces wait for a key, which
// is for keysTimeout at most, over all calls.
func (v *verification) Write(p []byte) (int, error) {
	n := len(p)
	if !v.inBody {
		p = v.addHeader(p)
	}
	for v.inBody && !v.ended && v.refused == nil && len(p) > 0 {
		piece := p[:min(len(p), pieceSize)]
		p = p[len(piece):]
		v.addBody(piece)
	}
	return n, nil
}

// addHeader takes the header of p, and returns the rest.
func (v *verification) addHeader(p []byte) (body []byte) {
	from := max(0, len(v.header)-3)
	v.header = append(v.header, p...)
	end := endOfHeader(v.header, from)
	switch {
	case end < 0 && len(v.header) <= maxHeader:
		return nil
	case end < 0 || end > maxHeader:
		v.inBody, v.refused, v.header = true, errLongHeader, nil
		return nil
	}
	body = p[len(p)-(len(v.header)-end):]
	v.header, v.inBody = v.header[:end:end], true
	v.begin()
	return body
}

// endOfHeader returns where the empty line after a header ends, -1 if it is not there yet.
// Up to from it was looked for before.
func endOfHeader(text []byte, from int) int {
	if bytes.HasPrefix(text, []byte("\r\n")) {
		return 2
	}
	if i := bytes.Index(text[from:], []byte("\r\n\r\n")); i >= 0 {
		return from + i + 4
	}
	return -1
}

// begin begins to verify the signatures, once the header is known.
func (v *verification) begin() {
	section := v.header[:len(v.header)-2]
	fields := header.SignatureFields(section)
	named := func(f header.SignatureField) bool {
		return f.State == verdict.ProofPending && slices.Contains(v.domains, f.Domain)
	}
	count, copied := cost(section)
	times, names := 0, 0
	for _, f := range fields {
		if named(f) {
			times, names = times+1, names+f.Names
		}
	}
	keys := &keys{questions: questions{resolver: v.proofs.resolver, left: maxQuestions}, ctx: v.ctx, until: time.Now().Add(keysTimeout)}
	v.verified = make([]verdict.Signature, len(fields))
	for i, f := range fields {
		v.verified[i] = f.Signature
		switch {
		case f.State != verdict.ProofPending:
		case !named(f):
			v.verified[i].State, v.verified[i].Why = verdict.NotProven, "nothing depends on it"
		case copied*times > maxCopied || count*f.Names > maxPicks || len(section)*names > maxRead:
			v.verified[i].State, v.verified[i].Why = verdict.NotProven, errExpensive.Error()
		default:
			body := newPipe()
			v.pipes = append(v.pipes, body)
			v.running.Go(func() {
				defer body.stop()
				v.verified[i].State, v.verified[i].Why = verify(keys, v.header, f, body)
			})
		}
	}
}

// cost counts the fields of a header section, and the bytes that the library copies.
func cost(section []byte) (fields, copied int) {
	for start, end := range header.Fields(section) {
		fields++
		copied += (end - start) * bytes.Count(section[start:end], []byte("\n")) / 2
	}
	return fields, copied
}

// addBody takes a piece of the body.
func (v *verification) addBody(p []byte) {
	const white = " \t\r\n"
	if rest := bytes.TrimRight(p, white); len(rest) > 0 {
		v.white = len(p) - len(rest)
	} else if v.white += len(p); v.white > maxWhite {
		v.refused = errWhite
		v.cancel()
		return
	}
	for _, body := range v.pipes {
		body.write(p)
	}
}

// Finish returns what came of the signatures. It waits until keysTimeout after the end of
// the header at most.
func (v *verification) Finish() []verdict.Signature {
	if !v.inBody {
		v.refused = errNoEnd
	}
	v.end()
	if v.refused == nil {
		return v.verified
	}
	var none []verdict.Signature
	for _, domain := range v.domains {
		none = append(none, verdict.Signature{Domain: domain, Why: v.refused.Error()})
	}
	return none
}

// Abort ends the verification of a message that is not whole.
func (v *verification) Abort() {
	v.cancel()
	v.end()
}

// end waits for the verifiers.
func (v *verification) end() {
	if v.ended {
		return
	}
	v.ended, v.inBody = true, true
	for _, body := range v.pipes {
		body.end()
	}
	v.running.Wait()
	v.cancel()
	v.header = nil
}
