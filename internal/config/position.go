package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"spamgate/internal/text"
)

// positions maps the path of each key, table and array element to its position in
// the file. Paths are "hostname", "listen.addr", "list[1].path" for the second
// [[list]], "headers.check[0]" for an element. go-toml gives positions only for its
// own errors; the checks after decoding need them too.
type positions map[string]unstable.Position

// index reads a document as far as the parser accepts it.
func index(src []byte) *indexer {
	ix := &indexer{pos: positions{}, again: map[unstable.Position]string{}, tables: map[string]int{}}
	ix.p.Reset(src)
	for ix.p.NextExpression() {
		switch n := ix.p.Expression(); n.Kind {
		case unstable.Table, unstable.ArrayTable:
			ix.prefix = ix.header(n)
		case unstable.KeyValue:
			ix.keyValue(ix.prefix, n)
		}
	}
	return ix
}

// indexer collects the positions of a document.
type indexer struct {
	p      unstable.Parser
	pos    positions
	again  map[unstable.Position]string // paths that appear again, by position
	prefix string                       // the table of the next key

	// tables counts the tables of each array of tables.
	tables map[string]int
}

// header records a [table] or [[table]] and returns its path.
func (ix *indexer) header(n *unstable.Node) string {
	path := ""
	for it := n.Key(); it.Next(); {
		path = child(path, string(it.Node().Data))
		ix.note(path, it.Node())
		if n.Kind == unstable.ArrayTable && it.IsLast() {
			ix.tables[path]++
		}
		if count := ix.tables[path]; count > 0 {
			path = element(path, count-1)
			ix.note(path, it.Node())
		}
	}
	return path
}

// keyValue records a key, which may be dotted, and the parts of its value.
func (ix *indexer) keyValue(prefix string, n *unstable.Node) {
	path := prefix
	for it := n.Key(); it.Next(); {
		path = child(path, string(it.Node().Data))
		ix.note(path, it.Node())
	}
	ix.value(path, n.Value())
}

// value records the elements of an array and the keys of an inline table.
func (ix *indexer) value(path string, n *unstable.Node) {
	switch n.Kind {
	case unstable.Array:
		i := 0
		for it := n.Children(); it.Next(); i++ {
			ix.note(element(path, i), it.Node())
			ix.value(element(path, i), it.Node())
		}
	case unstable.InlineTable:
		for it := n.Children(); it.Next(); {
			ix.keyValue(path, it.Node())
		}
	}
}

// note records the first position of a path. An array has no position.
func (ix *indexer) note(path string, n *unstable.Node) {
	if n.Raw.Length == 0 {
		return
	}
	pos := ix.p.Shape(n.Raw).Start
	if _, ok := ix.pos[path]; ok {
		ix.again[unstable.Position{Line: pos.Line, Column: pos.Column}] = path
	} else {
		ix.pos[path] = pos
	}
}

// has reports whether the file has the path.
func (p positions) has(path string) bool {
	_, ok := p[path]
	return ok
}

// find returns the position of the path, or of the nearest enclosing one: the
// [[list]] for a missing key, the key for one of its elements.
func (pos positions) find(path string) (line, column int) {
	for path != "" {
		if p, ok := pos[path]; ok {
			return p.Line, p.Column
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 0, 0
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// child returns the path of a key in a table. It quotes keys that are not bare, so
// that a "." inside one does not look like a separator.
func child(table, key string) string {
	if !bareKey.MatchString(key) {
		key = strconv.QuoteToASCII(key)
	}
	if table == "" {
		return key
	}
	return table + "." + key
}

// element returns the path of the i-th element of an array.
func element(array string, i int) string {
	return fmt.Sprintf("%s[%d]", array, i)
}

var ordinal = regexp.MustCompile(`\[\d+\]`)

// display returns a path without ordinals, for messages: the line tells which
// [[list]] is meant.
func display(path string) string {
	return ordinal.ReplaceAllString(path, "")
}

// Error is one fault of a configuration file. Load joins them (errors.Join) in the
// order of the file.
type Error struct {
	// File is the path as it was given to Load.
	File string

	// Line and Column count from 1; both are 0 if the fault has no place, such as a
	// missing list.
	Line, Column int

	// Key is the full name of the key, "listen.addr"; empty for a fault of
	// the TOML itself.
	Key string

	// What says what is wrong, and Hint what to do.
	What, Hint string
}

// Error returns "file:line:column: key: what; hint" without the parts that are
// empty, and without the passwords and tokens of URLs.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Place() + ": ")
	if e.Key != "" {
		b.WriteString(e.Key)
		b.WriteString(": ")
	}
	b.WriteString(text.HideSecrets(e.What))
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(text.HideSecrets(e.Hint))
	}
	return b.String()
}

// Place returns "file:line:column", or the file alone.
func (e *Error) Place() string {
	if e.Line == 0 {
		return e.File
	}
	return fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
}

// Fault returns an error about the value of a key that appears only when the value
// is used, such as a file that cannot be opened. It reads the file again for the
// position of the key: a path such as "log.output", or one from ListKey,
// ListenerKey or Hop.AddrKey.
func (c *Config) Fault(key, what, hint string) *Error {
	fault := &Error{File: c.File, Key: display(key), What: what, Hint: hint}
	if pos, err := c.positions(); err == nil {
		fault.Line, fault.Column = pos.find(key)
	}
	return fault
}

// positions reads the file again.
func (c *Config) positions() (positions, error) {
	src, err := readFile(c.File)
	return index(bytes.TrimPrefix(src, []byte(byteOrderMark))).pos, err
}

// ListKey returns the path of a key of Lists[i].
func (c *Config) ListKey(i int, key string) string { return element("list", i) + "." + key }

// ListenerKey returns the path of a key of Listeners[i]: in its own table or, if
// that does not set the key, in [listen].
func (c *Config) ListenerKey(i int, key string) string {
	i = c.tableOf(i)
	own := element("listener", i) + "." + key
	if i < 0 {
		return "listen." + key
	}
	if pos, err := c.positions(); err == nil && !pos.has(own) {
		return "listen." + key
	}
	return own
}

// tableOf returns the index of the [[listener]] table of Listeners[i], -1 for [listen].
func (c *Config) tableOf(i int) int {
	if len(c.Listen.Addr) > 0 {
		i-- // [listen] is the first of them
	}
	return i
}

// inOrder sorts faults in the order of the file.
func inOrder(faults []*Error) []*Error {
	slices.SortStableFunc(faults, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return faults
}

// Join makes one error of many, in the order of the file, or nil of none.
func Join(faults []*Error) error {
	inOrder(faults)
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = f
	}
	return errors.Join(errs...)
}
