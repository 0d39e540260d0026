package listfiles

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"

	"spamgate/blocklist/listfile"
	"spamgate/internal/joined"
	"spamgate/internal/setup"
	"spamgate/internal/term"
)

// Page is a part of the entries of a list, in the order of its files.
type Page struct {
	Entries []Located

	// File is the number of the file that the entries are from, and First the place of
	// the page. Before and Next are the places of the pages around it; nil: there is none.
	File         int
	First        Place
	Before, Next *Place

	// Lines says that each line has its meaning alone, so that the file can be read from
	// anywhere. Of other files the first [MaxFirst] entries are shown; Cut: it has more.
	Lines bool
	Cut   bool
}

// MaxPage is the greatest number of entries of a page. It may have some more if a line has
// several.
const MaxPage = 1000

// MaxFirst is the number of entries that are shown of a file that can only be read from its
// beginning.
const MaxFirst = 10_000

// maxPageBytes bounds what is read for one page: long comments, or lines that are no entries.
const maxPageBytes = 4 << 20

// Browse returns about n entries of a list from a place on, expired ones included. It reads no
// more of the file than it needs, except to count lines.
func Browse(ctx context.Context, l *List, place Place, n int) (Page, error) {
	n = max(1, min(n, MaxPage))
	if place.File < 0 || place.File >= len(l.Paths) {
		return Page{}, fmt.Errorf("list %s has no file number %d", l.Name, place.File+1)
	}
	path := l.Paths[place.File]
	f, err := setup.Opener(l.List).Open(path)
	if err != nil {
		return Page{}, WithAuthority(err, WhoServes)
	}
	defer f.Close()
	b := &browser{ctx: ctx, list: l, path: path, file: f, options: l.Options}
	page, err := b.page(place, n)
	if err != nil {
		return Page{}, fmt.Errorf("list %s: %s: %w", l.Name, term.ShortPath(path), err)
	}
	page.File = place.File
	b.around(&page)
	return page, nil
}

// browser reads pages of one file.
type browser struct {
	ctx     context.Context
	list    *List
	path    string
	file    *os.File
	size    int64
	options listfile.Options
}

// page returns the page at a place.
func (b *browser) page(place Place, n int) (Page, error) {
	info, err := b.file.Stat()
	if err != nil {
		return Page{}, err
	}
	b.size = info.Size()
	lines, err := b.hasLines()
	if err != nil {
		return Page{}, err
	}
	if !lines {
		return b.fromStart(place, n)
	}
	if place, err = b.align(place); err == nil && place.Back {
		place, err = b.back(place, n)
	}
	if err != nil {
		return Page{}, err
	}
	return b.forward(place, n)
}

// around adds the ends of the files before and after the page's.
func (b *browser) around(p *Page) {
	if p.Before == nil && p.File > 0 {
		last := LastPage(p.File - 1)
		p.Before = &last
	}
	if p.Next == nil && p.File+1 < len(b.list.Paths) {
		p.Next = &Place{File: p.File + 1, Line: 1}
	}
}

// hasLines reports whether the file can be read from any line. It determines the format.
func (b *browser) hasLines() (bool, error) {
	start := make([]byte, 64<<10)
	n, err := b.file.ReadAt(start, 0)
	if err != nil && err != io.EOF {
		return false, err
	}
	start = start[:n]
	if b.options.Format == listfile.Auto {
		b.options.Format, _ = listfile.Detect(start)
	}
	content, packed, err := listfile.Unpack(bytes.NewReader(start), 0)
	if err != nil {
		return false, err
	}
	content.Close()
	if packed {
		b.options.Format = listfile.Format(b.list.Format) // to be detected in what is unpacked
	}
	return !packed && b.options.Format.Lines(), nil
}

// align moves a place to the beginning of a line, and counts the lines before it if their
// number is not known: the file may have changed since the place was made.
func (b *browser) align(place Place) (Place, error) {
	if place.Offset >= b.size {
		place.Offset, place.Line = b.size, 0
	}
	if place.Offset == 0 {
		place.Line = 1
		return place, nil
	}
	var before [1]byte
	if _, err := b.file.ReadAt(before[:], place.Offset-1); err != nil {
		return place, err
	}
	if before[0] != '\n' && place.Offset < b.size {
		start, err := b.lineStart(place.Offset)
		if err != nil {
			return place, err
		}
		place.Offset, place.Line = start, 0
	}
	if place.Line > 0 {
		return place, nil
	}
	n, err := b.countLines(place.Offset)
	place.Line = n + 1
	return place, err
}

// countLines returns the number of line ends before an offset. All processors count.
func (b *browser) countLines(end int64) (int, error) {
	const part = 1 << 20
	var next, found atomic.Int64
	var running joined.Group
	errs := make([]error, runtime.GOMAXPROCS(0))
	for i := range errs {
		running.Go(func() {
			buf := make([]byte, part)
			for offset := next.Add(part) - part; offset < end; offset = next.Add(part) - part {
				n, err := b.file.ReadAt(buf[:min(part, end-offset)], offset)
				found.Add(int64(bytes.Count(buf[:n], []byte{'\n'})))
				if err = cmp.Or(err, context.Cause(b.ctx)); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	running.Wait()
	return int(found.Load()), errors.Join(errs...)
}

// maxLineBytes bounds the search for the ends of a line.
const maxLineBytes = 4 << 20

var errLongLine = fmt.Errorf("a line of more than %d MiB", maxLineBytes>>20)

// chunk is the number of bytes that are read at a time.
const chunk = 64 << 10

// lineStart returns where the line begins that has the byte before an offset.
func (b *browser) lineStart(offset int64) (int64, error) {
	buf := make([]byte, chunk)
	for end := offset; end > 0; {
		from := max(0, end-chunk)
		if _, err := b.file.ReadAt(buf[:end-from], from); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:end-from], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		if end = from; offset-end > maxLineBytes {
			return 0, errLongLine
		}
	}
	return 0, nil
}

// lineEnd returns where the line ends that has the byte at an offset.
func (b *browser) lineEnd(offset int64) (int64, error) {
	buf := make([]byte, chunk)
	for from := offset; from-offset <= maxLineBytes; from += chunk {
		n, err := b.file.ReadAt(buf, from)
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		if err == io.EOF {
			return from + int64(n), nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, errLongLine
}

// lines are some lines of the file.
type lines struct {
	text  []byte
	start Place
}

// read returns the lines from a place to an offset.
func (b *browser) read(from Place, end int64) (lines, error) {
	text := make([]byte, end-from.Offset)
	_, err := b.file.ReadAt(text, from.Offset)
	return lines{text, Place{File: from.File, Offset: from.Offset, Line: from.Line}}, err
}

// some returns some lines from a place on.
func (b *browser) some(from Place) (lines, error) {
	end := min(from.Offset+chunk, b.size)
	if end < b.size {
		start, err := b.lineStart(end)
		if err == nil && start <= from.Offset {
			start, err = b.lineEnd(end)
		}
		if err != nil {
			return lines{}, err
		}
		end = start
	}
	return b.read(from, end)
}

// someBefore returns some lines before a place.
func (b *browser) someBefore(end Place) (lines, error) {
	start, err := b.lineStart(max(0, end.Offset-chunk))
	if err != nil {
		return lines{}, err
	}
	here, err := b.read(Place{File: end.File, Offset: start}, end.Offset)
	here.start.Line = end.Line - bytes.Count(here.text, []byte{'\n'})
	return here, err
}

// end returns the place after the lines.
func (l lines) end() Place {
	return Place{File: l.start.File, Offset: l.start.Offset + int64(len(l.text)), Line: l.start.Line + bytes.Count(l.text, []byte{'\n'})}
}

// place returns the place of the line with a number.
func (l lines) place(line int) Place {
	pos := l.start
	for text := l.text; pos.Line < line; pos.Line++ {
		n := bytes.IndexByte(text, '\n') + 1
		text, pos.Offset = text[n:], pos.Offset+int64(n)
	}
	return pos
}

// entries returns the entries of the lines, with their numbers in the file.
func (b *browser) entries(l lines) (all []listfile.Entry, err error) {
	for e, err := range listfile.NewReader(bytes.NewReader(l.text), b.options).All() {
		if err != nil {
			return nil, err
		}
		e.Line += l.start.Line - 1
		all = append(all, e)
	}
	return all, nil
}

// forward returns the page that begins at a place.
func (b *browser) forward(place Place, n int) (Page, error) {
	page := Page{First: place, Lines: true}
	if place.Offset > 0 {
		page.Before = &Place{place.File, place.Offset, place.Line, true}
	}
	for place.Offset < b.size {
		if len(page.Entries) >= n || place.Offset-page.First.Offset > maxPageBytes {
			page.Next = &place
			break
		}
		here, err := b.some(place)
		if err != nil {
			return page, err
		}
		entries, err := b.entries(here)
		if err != nil {
			return page, err
		}
		for _, e := range entries {
			if have := len(page.Entries); have >= n && e.Line != page.Entries[have-1].Entry.Line {
				next := here.place(e.Line)
				page.Next = &next
				return page, nil
			}
			page.Entries = append(page.Entries, Located{b.list, b.path, e})
		}
		place = here.end()
	}
	return page, nil
}

// back returns the place of the page that ends at a place.
func (b *browser) back(end Place, n int) (Place, error) {
	place := end
	for place.Offset > 0 && end.Offset-place.Offset <= maxPageBytes {
		here, err := b.someBefore(place)
		if err != nil {
			return place, err
		}
		entries, err := b.entries(here)
		if err != nil {
			return place, err
		}
		if len(entries) >= n {
			return here.place(entries[len(entries)-n].Line), nil
		}
		n -= len(entries)
		place = here.start
	}
	place.Back = false
	return place, nil
}

// fromStart returns the page of a file that can only be read from its beginning. The offset of
// its places is the number of entries before the page.
func (b *browser) fromStart(place Place, n int) (Page, error) {
	if place.Back && place.Offset > MaxFirst {
		place.Offset = MaxFirst
	}
	if place.Back {
		place.Offset = max(0, place.Offset-int64(n))
	}
	first := min(place.Offset, MaxFirst)
	page := Page{First: Place{File: place.File, Offset: first}}
	if first > 0 {
		page.Before = &Place{place.File, first, 0, true}
	}
	in := Stoppable(b.ctx, io.NewSectionReader(b.file, 0, b.size))
	number := int64(0)
	for e, err := range listfile.NewReader(in, b.options).All() {
		switch {
		case err != nil:
			return page, err
		case number >= MaxFirst:
			page.Cut = true
			return page, nil
		case number >= first+int64(n):
			page.Next = &Place{File: place.File, Offset: number}
			return page, nil
		case number >= first:
			page.Entries = append(page.Entries, Located{b.list, b.path, e})
		}
		number++
	}
	return page, nil
}
