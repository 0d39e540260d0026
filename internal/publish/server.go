package publish

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"spamgate/internal/atomicfile"
)

const (
	// maxWait bounds how long a question for a new signature waits, and maxWaiting how
	// many wait at once. One more is answered without a wait.
	maxWait    = time.Minute
	maxWaiting = 4096

	// slowest is the speed in bytes a second below which a reader is dropped.
	slowest = 64 << 10
)

// Server serves the published lists of a directory. Anyone may read them unless there are
// tokens. It is safe for concurrent use.
type Server struct {
	// Idle, if it is not nil, is told that a request only waits, until again. It is set before the
	// server is used.
	Idle func(r *http.Request) (again func())

	tree    atomicfile.Tree
	waiting chan struct{}
	packing chan struct{}
	closed  chan struct{}
	close   sync.Once

	mu     sync.Mutex
	lists  map[string]*served // by the name of the file
	tokens [][sha256.Size]byte
}

// served is the version of a list that is served.
type served struct {
	signature []byte
	etag      string
	replaced  chan struct{} // closed when there is another version
}

// NewServer returns a server for the lists in a directory, without any yet.
func NewServer(dir string) *Server {
	return &Server{
		tree: atomicfile.In(dir), waiting: make(chan struct{}, maxWaiting), packing: make(chan struct{}, maxPacking),
		closed: make(chan struct{}), lists: map[string]*served{},
	}
}

// Set serves a version of a list, and answers the questions that wait for it.
func (s *Server) Set(name string, r Result) {
	sum := sha256.Sum256(r.Signature)
	current := &served{signature: r.Signature, etag: `"` + hex.EncodeToString(sum[:16]) + `"`, replaced: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.lists[name]; was != nil {
		if was.etag == current.etag {
			return
		}
		close(was.replaced)
	}
	s.lists[name] = current
}

// Keep ends serving all lists but some.
func (s *Server) Keep(names func(name string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, l := range s.lists {
		if !names(name) {
			close(l.replaced)
			delete(s.lists, name)
		}
	}
}

// SetTokens sets the tokens, one of which a reader has to send: in the query, or as a bearer
// token. None means that anyone may read.
func (s *Server) SetTokens(tokens []string) {
	sums := make([][sha256.Size]byte, len(tokens))
	for i, t := range tokens {
		sums[i] = sha256.Sum256([]byte(t))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = sums
}

// Close answers the questions that wait. Later ones are answered without a wait.
func (s *Server) Close() { s.close.Do(func() { close(s.closed) }) }

// list returns a list by the name of its file; nil if there is none.
func (s *Server) list(name string) *served {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists[name]
}

// ServeHTTP serves lists, signatures and patches.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	if !s.allowed(r) {
		h.Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a token is needed", http.StatusUnauthorized)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if list, ok := strings.CutSuffix(name, signatureSuffix); ok && s.list(list) != nil {
		s.serveSignature(w, r, list)
		return
	}
	list, patch, isPatch := strings.Cut(name, patchesSuffix+"/")
	if s.list(list) == nil || isPatch && !patchFile.MatchString(patch) {
		http.NotFound(w, r)
		return
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	s.serveFile(w, r, name)
}

// allowed reports whether a request has a token, if one is needed.
func (s *Server) allowed(r *http.Request) bool {
	s.mu.Lock()
	tokens := s.tokens
	s.mu.Unlock()
	if len(tokens) == 0 {
		return true
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		token = r.URL.Query().Get("token")
	}
	sum, found := sha256.Sum256([]byte(token)), 0
	for _, t := range tokens {
		found |= subtle.ConstantTimeCompare(sum[:], t[:])
	}
	return found == 1
}

// serveSignature serves the signature of a list. If the reader has it already and wants to wait,
// it waits for the next one.
func (s *Server) serveSignature(w http.ResponseWriter, r *http.Request, list string) {
	current := s.list(list)
	if wait, ok := preferredWait(r); ok {
		w.Header().Set("Preference-Applied", fmt.Sprintf("wait=%d", int(wait.Seconds())))
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + maxWait))
		if current != nil && wait > 0 && matches(r, current.etag) {
			s.await(r, current, wait)
			current = s.list(list)
		}
	}
	if current == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", current.etag)
	if matches(r, current.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(current.signature)))
	_, _ = w.Write(current.signature)
}

// await waits until there is another version, for a time.
func (s *Server) await(r *http.Request, current *served, wait time.Duration) {
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return
	}
	if s.Idle != nil {
		defer s.Idle(r)()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-current.replaced:
	case <-timer.C:
	case <-r.Context().Done():
	case <-s.closed:
	}
}

// preferredWait returns how long a reader wants to wait (RFC 7240, section 4.3), at most maxWait.
func preferredWait(r *http.Request) (wait time.Duration, ok bool) {
	for _, value := range r.Header.Values("Prefer") {
		for part := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ',' || c == ';' || c == ' ' }) {
			if text, is := strings.CutPrefix(strings.ToLower(part), "wait="); is {
				seconds, err := strconv.ParseUint(strings.Trim(text, `"`), 10, 31)
				return min(time.Duration(seconds)*time.Second, maxWait), err == nil
			}
		}
	}
	return 0, false
}

// matches reports whether the reader has the version with an ETag.
func matches(r *http.Request, etag string) bool {
	for _, value := range r.Header.Values("If-None-Match") {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimPrefix(strings.TrimSpace(part), "W/"); part == etag || part == "*" {
				return true
			}
		}
	}
	return false
}

// serveFile serves a file.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, name string) {
	file, err := s.tree.Open(name)
	var info os.FileInfo
	if err == nil {
		defer file.Close()
		info, err = file.Stat()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.NotFound(w, r)
		return
	case err != nil:
		http.Error(w, "the list cannot be read: see the log of the publisher", http.StatusInternalServerError)
		return
	}
	slow := time.Duration(info.Size()/slowest) * time.Second
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(maxWait + slow))
	etag := fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size())
	w.Header().Set("Vary", "Accept-Encoding")
	packed := s.pack(w, r, &etag)
	w.Header().Set("ETag", etag)
	http.ServeContent(packed, r, "", info.ModTime(), file)
	_ = packed.Close() // an error says that the reader has gone
}
