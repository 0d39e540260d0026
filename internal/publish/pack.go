package publish

import (
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"
)

const (
	// maxPacking is how many answers are packed at once, each with some MiB of memory. Others are
	// sent as they are.
	maxPacking = 16

	// packWindow is how far back what is packed may refer. RFC 9659 permits 8 MiB.
	packWindow = 1 << 20
)

// packing writes the body of an answer, packed if z is not nil.
type packing struct {
	http.ResponseWriter
	z    *zstd.Encoder
	used bool // there is a body
	done func()
}

// pack packs the body of an answer with zstd (RFC 8878), if the reader can unpack that. Such a
// body has no parts, and is the same version only weakly (RFC 9110, section 8.8.1). The caller
// calls Close.
func (s *Server) pack(w http.ResponseWriter, r *http.Request, etag *string) *packing {
	p := &packing{ResponseWriter: w, done: func() {}}
	if !acceptsZstd(r) {
		return p
	}
	select {
	case s.packing <- struct{}{}:
	default:
		return p
	}
	p.done = func() { <-s.packing }
	var err error
	if p.z, err = zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(packWindow)); err == nil {
		*etag = "W/" + *etag
		w.Header().Set("Content-Encoding", "zstd") // which ServeContent removes if there is no body
		r.Header.Del("Range")
	}
	return p
}

func (p *packing) Write(b []byte) (int, error) {
	if p.z == nil {
		return p.ResponseWriter.Write(b)
	}
	p.used = true
	return p.z.Write(b)
}

// Close ends the body.
func (p *packing) Close() error {
	defer p.done()
	if !p.used {
		return nil
	}
	return p.z.Close()
}

// acceptsZstd reports whether a reader takes zstd (RFC 9110, section 12.5.3). One that gives it a
// weight gets the list as it is.
func acceptsZstd(r *http.Request) bool {
	for _, value := range r.Header.Values("Accept-Encoding") {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(part), "zstd") {
				return true
			}
		}
	}
	return false
}
