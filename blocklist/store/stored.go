package store

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"spamgate/blocklist"
	"spamgate/blocklist/segment"
)

// storedMeta is kept with an index: what was read beside the entries, and from what.
type storedMeta struct {
	Program string // that made it
	Content content
	Stamps  []stamp
}

// storedStamps is the file beside an index with the stamps of its files as they were seen
// since. Files may be touched, and a file that was read too soon after a change has to be
// read again: see [stamp.racy].
type storedStamps struct{ Stamps []stamp }

// program names the build of the program: another one may read lists differently.
var program = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return buildSum()
	}
	words := []string{info.GoVersion, info.Main.Version}
	revision := false
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "vcs.") {
			words = append(words, s.Value)
		}
		revision = revision || s.Key == "vcs.revision"
	}
	if !revision || slices.Contains(words, "true") { // vcs.modified: the revision does not tell
		words = append(words, buildSum())
	}
	return strings.Join(words, " ")
})

// buildSum returns a name for the build of the program that does not need version control, such
// as if it was built from an archive: the Go build ID, or else a checksum of the program's file;
// "" if that cannot be read.
func buildSum() string {
	f, err := os.Open("/proc/self/exe") // the file that runs, even if another one has its name since
	if err != nil {
		name, _ := os.Executable()
		f, err = os.Open(name)
	}
	if err != nil {
		return ""
	}
	defer f.Close()
	if note := buildNote(f); note != nil {
		return fmt.Sprintf("%x", sha256.Sum256(note))
	}
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return fmt.Sprintf("%x", h.Sum32())
}

// buildNote returns the ELF note with the Go build ID; nil if the file has none.
func buildNote(f io.ReaderAt) []byte {
	const nothing = 16 // the sizes, the type and the name of a note
	file, err := elf.NewFile(f)
	if err != nil {
		return nil
	}
	section := file.Section(".note.go.buildid")
	if section == nil {
		return nil
	}
	if note, err := section.Data(); err == nil && len(note) > nothing {
		return note
	}
	return nil
}

// storedHeader returns what an index of a list is made with.
func storedHeader(k *blocklist.Keys, l *List, o readOptions, c *content, stamps []stamp) (segment.Header, error) {
	meta, err := json.Marshal(storedMeta{program(), *c, stamps})
	if err != nil {
		return segment.Header{}, fmt.Errorf("describing the index: %w", err)
	}
	return segment.Header{Source: sourceDigest(k, stamps), Options: optionsDigest(k, l, o), Meta: meta}, nil
}

// sourceDigest returns the digest of what the files hold.
func sourceDigest(k *blocklist.Keys, stamps []stamp) [32]byte {
	return k.Digest([]byte(sumOf(stamps)))
}

// optionsDigest returns the digest of all that decides which entries are read.
func optionsDigest(k *blocklist.Keys, l *List, o readOptions) [32]byte {
	return k.Digest([]byte(o.text(l)))
}

// text returns all that decides which entries are read. How large a file may be does not
// matter.
func (o *readOptions) text(l *List) string {
	text := fmt.Sprintf("%q %q %q %t %t %t %d %t %q %t", l.Paths, string(o.Format), o.Column,
		o.Allow, o.Exact, o.AllowPublicSuffix, o.Now, o.noExceptions, o.protect, o.hold)
	// Only what differs from the default, so that the stored versions of most lists stay valid.
	if l.URL != "" && !o.nullSender {
		text += " allow_null_sender"
	}
	if l.URL != "" && !o.anywhere {
		text += " allow_local_parts"
	}
	if o.PerRecipient {
		text += " per_recipient"
	}
	if o.Discard {
		text += " discard"
	}
	return text
}

// sum returns a sum of text, which is the same in any process.
func (o *readOptions) sum(l *List) string {
	sum := sha256.Sum256([]byte(o.text(l)))
	return hex.EncodeToString(sum[:])
}

// load returns the stored version of a list; nil if there is none that can be used. Same says
// whether the list is read as it was then. If not, the version is only there to be compared
// with.
func (s *state) load(l *List, o readOptions) (v *version, same bool) {
	if !s.keeping() {
		return nil, false
	}
	started := time.Now()
	v, options, err := s.open(l.Name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("stored index unusable, its list is read again", "list", l.Name, "error", err)
			if errors.Is(err, segment.ErrFormat) {
				s.noteForeign(l.Name)
			}
		}
		return nil, false
	}
	same = options == optionsDigest(s.keys, l, o)
	s.log.Debug("stored index opened", "list", l.Name, "entries", v.Entries, "stale", v.stale, "same", same,
		"duration", time.Since(started).Round(time.Millisecond).String())
	return v, same
}

// noteForeign notes that another version of the program has stored a list.
func (s *state) noteForeign(list string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foreign[list] = true
}

func (s *state) isForeign(list string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.foreign[list]
}

// bitsFile returns where the bits of a list are kept.
func (s *state) bitsFile(list string, readOnly bool) *bitsFile {
	if !s.keeping() {
		return new(bitsFile)
	}
	return &bitsFile{s.tree, path.Join(ListName(list), bitsName), s.work, readOnly}
}

// open opens the stored index of a list.
func (s *state) open(list string) (v *version, options [32]byte, err error) {
	dir := ListName(list)
	name := path.Join(dir, segmentName)
	index, err := s.openSegment(name)
	if err != nil {
		return nil, options, err
	}
	header := index.Header()
	var meta storedMeta
	if err := json.Unmarshal(header.Meta, &meta); err != nil {
		return nil, options, fmt.Errorf("%s: %w: its description: %w", s.tree.Path(name), segment.ErrDamaged, err)
	}
	if header.Source != sourceDigest(s.keys, meta.Stamps) {
		return nil, options, fmt.Errorf("%s: %w: its description is of other files", s.tree.Path(name), segment.ErrDamaged)
	}
	v = newVersion(index, meta.Content, meta.Stamps, s.bitsFile(list, !s.writable()))
	v.kept, v.stale = true, meta.Program != program()
	if text, err := s.tree.ReadFile(path.Join(dir, stampsName), maxSmall); err == nil {
		var since storedStamps
		// They may be of the version before, or of the next one.
		if json.Unmarshal(text, &since) == nil && sumOf(since.Stamps) == sumOf(v.stamps) {
			v.stamps = since.Stamps
		}
	}
	return v, header.Options, nil
}

// openSegment maps a segment of the state directory.
func (s *state) openSegment(name string) (*segment.Segment, error) {
	file, err := s.tree.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() // a map needs no descriptor
	return segment.Map(file, s.tree.Path(name), s.keys.Segment())
}

// keep makes a version that went live the one that the next start finds.
func (s *state) keep(l *List, v *version) error {
	if v.pending == "" || !s.writable() {
		return nil
	}
	if err := s.place(l, v.pending); err != nil {
		v.pending, v.bits.readOnly = "", true // what was built is swept away
		return err
	}
	s.mu.Lock()
	delete(s.pending, v.pending)
	s.mu.Unlock()
	v.pending, v.kept = "", true
	return s.tree.Sync(ListName(l.Name))
}

// share stores the version of one list for another one, too: the list was renamed, or is
// configured twice. If the first has another version by now, share does nothing.
func (s *state) share(from string, l *List, v *version) error {
	name := s.newName() // swept away if it stays
	err := s.tree.Link(path.Join(ListName(from), segmentName), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("keeping the index of list %q: %w", l.Name, err)
	}
	linked, err := s.openSegment(name)
	if err != nil || linked.Digest() != v.index.Segment().Digest() {
		return nil
	}
	if err := s.place(l, name); err != nil {
		return err
	}
	return s.tree.Sync(ListName(l.Name))
}

// place moves a file with an index to its place in the list's directory.
func (s *state) place(l *List, name string) error {
	dir := ListName(l.Name)
	err := s.tree.MakeDirs(dir)
	if err == nil {
		err = s.tree.Rename(name, path.Join(dir, segmentName))
	}
	if err != nil {
		return fmt.Errorf("keeping the index of list %q: %w", l.Name, err)
	}
	return nil
}

// keepStamps notes that the files of a stored version look different now, and hold what they
// held.
func (s *state) keepStamps(l *List, v *version, stamps []stamp) error {
	if !v.kept || !s.writable() {
		return nil
	}
	text, err := json.Marshal(storedStamps{stamps})
	if err == nil {
		err = s.tree.WriteFile(path.Join(ListName(l.Name), stampsName), s.work, newPattern, text)
	}
	if err != nil {
		return fmt.Errorf("keeping what was seen of list %q: %w", l.Name, err)
	}
	return nil
}

// store keeps what serves, and what was seen of its files, for the next start.
func (s *source) store() error {
	v := s.live.good
	if v == nil {
		return nil
	}
	from := s.keptAs
	s.keptAs = ""
	if v.pending != "" {
		s.kept = nil
		return s.state.keep(s.list, v)
	}
	var err error
	if from != "" && from != s.list.Name && v.kept && s.state.writable() {
		err = s.state.share(from, s.list, v)
		s.kept = []stamp{} // none of this list
	}
	kept := s.kept
	if kept == nil {
		kept = v.stamps
	}
	known := sameAttributes(kept, s.live.stamps) && (!slices.ContainsFunc(kept, stamp.racy) || slices.ContainsFunc(s.live.stamps, stamp.racy))
	if known || s.live.err != nil { // with an error they are of what does not serve
		return err
	}
	s.kept = s.live.stamps
	return errors.Join(err, s.state.keepStamps(s.list, v, s.kept))
}

// sumOf returns the [Opener.ContentSum] of files that were read to their end; "" for others.
func sumOf(stamps []stamp) string {
	sums := make([][32]byte, len(stamps))
	for i := range stamps {
		if stamps[i].Digest == [32]byte{} {
			return ""
		}
		sums[i] = stamps[i].Digest
	}
	return contentSum(sums)
}
