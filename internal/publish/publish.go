// Package publish writes lists for others to fetch: signed, numbered, and with the changes
// from earlier versions. It also serves them.
//
// A published list consists of files in one directory, which any web server can serve:
//
//	blocked.txt                 the list
//	blocked.txt.minisig         its minisign signature
//	blocked.txt.patches/…       what makes the next version of an earlier one (package rcs)
//
// A list in the gate's own format begins with the path of the patch that makes its next version,
// once there is one. It is named as AdGuard's DiffBuilder does, with the sequence number and the
// time of the version:
//
//	# Diff-Path: blocked.txt.patches/1795300012-s-1795300739-3600.patch#list
//	# Diff-Expires: 1 hour
//
// The signature's trusted comment has, after what minisign writes by itself, the sequence
// number of the version, when the signature expires, and the sum of the list:
//
//	timestamp:1795300739	file:blocked.txt	hashed	sequence:1795300012	expires:1795905539	sha256:…
//
// The sequence number grows by one with each version. It begins with the present time, so that
// a publisher whose directory was lost does not begin below what others have accepted. A list
// that has not changed keeps its number when it is signed again.
package publish

import (
	"bufio"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"aead.dev/minisign"

	"spamgate/internal/atomicfile"
	"spamgate/internal/rcs"
)

const (
	signatureSuffix = ".minisig"
	patchesSuffix   = ".patches"
	draftPrefix     = ".publish-"

	maxSignature = 16 << 10

	// mode is that of what is published, less the umask.
	mode, dirMode = 0o666, 0o777
)

// DefaultExpires is how long a signature is good.
const DefaultExpires = 7 * 24 * time.Hour

// List is a published list.
type List struct {
	// Dir is the directory of the list, which exists, and Name the name of its file. The
	// web server publishes what is there.
	Dir, Name string

	Key Key

	// Expires is how long a signature is good; 0 means for ever. Publish signs a list
	// that has not changed again when half of it is over.
	Expires time.Duration

	// Patches means that the list has comments after "#", and is to name its patches.
	Patches bool
}

// What [List.Publish] has done.
const (
	Written   = "published"
	Signed    = "signed again"
	Unchanged = "unchanged"
)

// Result describes the published version.
type Result struct {
	What     string    // see above
	SHA256   string    // of the list, in hex
	Bytes    int64     // its size
	Patch    int64     // size of the changes from the version before; 0 if there are none
	Sequence int64     // see the package's comment
	Signed   time.Time // when the signature was made
	Expires  time.Time // zero means never

	// Signature is the text of the signature.
	Signature []byte
}

// Start returns the first line of a published list in the gate's own format. Without it, a list
// without entries would be an empty file, which looks like a failure to those who fetch it.
func Start(list string) string { return "# list " + list + "\n" }

// CheckName checks the name of a published file.
func CheckName(name string) error {
	if name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") || strings.ContainsAny(name, "\t\r\n\x00/\\") ||
		strings.HasSuffix(name, signatureSuffix) || strings.HasSuffix(name, patchesSuffix) {
		return fmt.Errorf("%q cannot be the name of a published file: write one such as blocked.txt", name)
	}
	return nil
}

// Publish publishes what write writes. If that is the present version, it only signs it again
// when half of the time to its end is over. Readers that fetch the list meanwhile get one
// version or the other, or for a moment a list and a signature that do not match, and try
// again. After an error the version before remains.
func (l List) Publish(now time.Time, write func(io.Writer) error) (Result, error) {
	if err := CheckName(l.Name); err != nil {
		return Result{}, err
	}
	tree := atomicfile.In(l.Dir)
	if err := l.makePatchesDir(); err != nil {
		return Result{}, err
	}
	unlock, err := tree.Lock(l.Name + patchesSuffix)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	_ = tree.RemoveStale(".", draftPrefix, time.Hour) // of processes that were killed
	was, err := l.published()
	if err != nil {
		return Result{}, err
	}
	p := &publication{List: l, tree: tree, now: now, was: was}
	if p.draft, err = tree.CreateUnnamed(".", draftPrefix+"*", mode); err != nil {
		return Result{}, err
	}
	defer p.draft.Discard()
	if err := p.write(write); err != nil {
		return Result{}, err
	}
	return p.finish()
}

// makePatchesDir makes the directory of the patches.
func (l List) makePatchesDir() error {
	root, err := os.OpenRoot(l.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = root.Mkdir(l.Name+patchesSuffix, dirMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.Dir, err)
	}
	return errors.Join(atomicfile.GiveAway(filepath.Join(l.Dir, l.Name+patchesSuffix)), atomicfile.SyncDir(l.Dir))
}

// version is what a directory has of a list, or is to have.
type version struct {
	sum    string // of the list; empty if there is none
	body   string // the sum without the head
	patch  string // the name of the patch that makes the next version; empty if there is to be none
	bytes  int64
	digest *minisign.Reader // everything of the list was read from it

	// Of what is published.
	says      Comment
	signature []byte
	good      bool // the signature is of the list, by the key
}

// read reads a list, and its head if that names the patch.
func (v *version) read(list io.Reader, head, patch string) (err error) {
	sum, body := sha256.New(), sha256.New()
	v.digest = minisign.NewReader(io.TeeReader(list, sum))
	in := bufio.NewReader(v.digest)
	if start, _ := in.Peek(len(head)); string(start) == head {
		n, _ := in.Discard(len(head))
		v.bytes, v.patch = int64(n), patch
	}
	n, err := io.Copy(body, in)
	v.sum, v.body, v.bytes = sumOf(sum), sumOf(body), v.bytes+n
	return err
}

func sumOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// head returns the first lines of a list whose next patch is to have a name.
func (l List) head(patch string) string {
	if patch == "" {
		return ""
	}
	u := url.URL{Path: l.patchPath(patch), Fragment: patchList}
	return "# Diff-Path: " + u.String() + "\n# Diff-Expires: 1 hour\n"
}

// published reads the version that is published. A signature that is none counts as missing.
func (l List) published() (version, error) {
	var v version
	tree := atomicfile.In(l.Dir)
	text, err := tree.ReadFile(l.Name+signatureSuffix, maxSignature)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return v, err
	}
	var s minisign.Signature
	if s.UnmarshalText(text) == nil {
		v.says, v.signature = readComment(s.TrustedComment), text
	}
	file, err := tree.Open(l.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	defer file.Close()
	patch, _, _ := strings.Cut(path.Base(rcs.Path(file)), "#")
	if !patchFile.MatchString(patch) {
		patch = ""
	}
	if err := v.read(file, l.head(patch), patch); err != nil {
		return v, err
	}
	v.good = v.digest.Verify(l.Key.Public(), v.signature) && v.says.SHA256 == v.sum && v.says.File == l.Name
	return v, nil
}

// publication is one run of Publish.
type publication struct {
	List
	tree   atomicfile.Tree
	now    time.Time
	was    version
	draft  *atomicfile.File
	made   version // in the draft
	result Result
}

// write writes the draft, and reads it for its sums.
func (p *publication) write(write func(io.Writer) error) error {
	patch := ""
	if p.Patches {
		patch = fmt.Sprintf("%d-s-%d-3600.patch", p.sequence(), p.now.Unix())
	}
	if _, err := io.WriteString(p.draft, p.head(patch)); err != nil {
		return err
	}
	if err := write(p.draft); err != nil {
		return err
	}
	if _, err := p.draft.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return p.made.read(p.draft, p.head(patch), patch)
}

// sequence returns the number of the next version.
func (p *publication) sequence() int64 {
	if p.was.says.Sequence == 0 {
		return p.now.Unix()
	}
	return p.was.says.Sequence + 1
}

// finish publishes the draft if it is another version, and signs it.
func (p *publication) finish() (Result, error) {
	list, what := p.made, Written
	if p.was.sum != "" && p.was.body == p.made.body {
		list, what = p.was, Signed
	}
	p.result.SHA256, p.result.Bytes = list.sum, list.bytes
	if what == Signed && p.was.good && !p.ages() {
		p.describe(Unchanged, p.was.says, p.was.signature)
		return p.result, nil
	}
	c := Comment{File: p.Name, SHA256: list.sum, Timestamp: max(p.now.Unix(), p.was.says.Timestamp), Sequence: p.was.says.Sequence}
	if p.was.says.SHA256 != list.sum || c.Sequence == 0 {
		c.Sequence = p.sequence()
	}
	if p.Expires != 0 {
		c.Expires = p.now.Add(p.Expires).Unix()
	}
	if what == Written {
		if err := p.replace(); err != nil {
			return Result{}, err
		}
	}
	signature := p.Key.sign(list.digest, c)
	if err := p.writeFile(p.Name+signatureSuffix, signature); err != nil {
		return Result{}, err
	}
	p.describe(what, c, signature)
	return p.result, nil
}

// ages reports whether half of the signature's time is over, or if that time is another.
func (p *publication) ages() bool {
	left := time.Unix(p.was.says.Expires, 0).Sub(p.now)
	if p.Expires == 0 || p.was.says.Expires == 0 {
		return p.Expires != 0 || p.was.says.Expires != 0
	}
	return left < p.Expires/2 || left > p.Expires
}

func (p *publication) describe(what string, c Comment, signature []byte) {
	r := &p.result
	r.What, r.Sequence, r.Signature, r.Signed = what, c.Sequence, signature, time.Unix(c.Timestamp, 0)
	if c.Expires != 0 {
		r.Expires = time.Unix(c.Expires, 0)
	}
}

// replace writes the patch of the version before, and then the list.
func (p *publication) replace() error {
	if p.was.good && p.was.patch != "" {
		if err := p.writePatch(); err != nil {
			return err
		}
	}
	if err := p.draft.GiveAway(); err != nil {
		return err
	}
	return p.draft.Commit(p.Name)
}

// writePatch writes the patch of the version before, unless it saves little.
func (p *publication) writePatch() error {
	old, err := p.tree.Open(p.Name)
	if err != nil {
		return err
	}
	defer old.Close()
	if _, err := p.draft.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum := sha1.New()
	script, err := rcs.Diff(old, io.TeeReader(p.draft, sum), min(maxPatch, p.made.bytes/2))
	switch {
	case err == nil:
		patch := rcs.Patch(patchList, script, [sha1.Size]byte(sum.Sum(nil)))
		if err := p.writeFile(p.patchPath(p.was.patch), patch); err != nil {
			return err
		}
		p.result.Patch = int64(len(patch))
	case !errors.Is(err, rcs.ErrLarge) && !errors.Is(err, rcs.ErrLines):
		return err
	}
	return p.prune(p.made.bytes)
}

// maxPatch bounds a patch, in bytes, which is made in memory.
const maxPatch = 8 << 20

// patchList is the name of the list in its patches, and patchFile the names of those.
const patchList = "list"

var patchFile = regexp.MustCompile(`^[0-9]{1,19}-s-[0-9]{1,19}-3600\.patch$`)

func (l List) patchPath(patch string) string { return l.Name + patchesSuffix + "/" + patch }

func (p *publication) writeFile(name string, text []byte) error {
	f, err := p.tree.Create(".", draftPrefix+"*", mode)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(text); err != nil {
		return err
	}
	if err := f.GiveAway(); err != nil {
		return err
	}
	return f.Commit(name)
}
