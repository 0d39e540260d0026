package logging

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// relay is a handler that formats a record with slog, and makes an entry of the line
// for an output that needs more than lines, such as a severity. The line has no time:
// syslog and the journal have it elsewhere.
type relay struct {
	slog.Handler // writes to out.line

	// groups and fields were added by WithGroup and WithAttrs: the names of the open
	// groups, and attributes with their groups.
	groups []string
	fields []field

	out *relayOutput
}

// field is an attribute with its groups.
type field struct {
	path  []string // groups, then the key
	value slog.Value
}

// relayOutput is shared by a handler and all that were derived from it.
type relayOutput struct {
	mu     sync.Mutex
	line   bytes.Buffer
	entry  []byte // reused
	encode encodeFunc
	add    func(data []byte, text int)
}

// encodeFunc appends the entry of a line, which ends in a newline, to b, and returns
// where the line begins in it. The handler has the attributes that are not in the
// record.
type encodeFunc func(b []byte, r slog.Record, line []byte, h *relay) (entry []byte, text int)

func newRelay(o Options, encode encodeFunc, add func(data []byte, text int)) *relay {
	out := &relayOutput{encode: encode, add: add}
	return &relay{Handler: newHandler(&out.line, o), out: out}
}

// relayNotice returns the notice of an output with encoded entries.
func relayNotice(o Options, encode encodeFunc) notice {
	var entry []byte
	var pos int
	h := newRelay(o, encode, func(data []byte, text int) { entry, pos = data, text })
	return func(dropped uint64, since time.Time) ([]byte, int) {
		_ = h.Handle(context.Background(), noticeRecord(dropped, since)) // a buffer takes everything
		return entry, pos
	}
}

// Handle adds the entry of a record.
func (h *relay) Handle(ctx context.Context, r slog.Record) error {
	out := h.out
	out.mu.Lock()
	defer out.mu.Unlock()
	out.line.Reset()
	timeless := r
	timeless.Time = time.Time{} // slog's handlers leave out the zero time
	if err := h.Handler.Handle(ctx, timeless); err != nil {
		return err
	}
	var text int
	out.entry, text = out.encode(out.entry[:0], r, out.line.Bytes(), h)
	out.add(out.entry, text)
	return nil
}

// WithAttrs implements slog.Handler.
func (h *relay) WithAttrs(attrs []slog.Attr) slog.Handler {
	fields := slices.Clip(h.fields)
	for _, a := range attrs {
		fields = appendFields(fields, h.groups, a)
	}
	return &relay{Handler: h.Handler.WithAttrs(attrs), groups: h.groups, fields: fields, out: h.out}
}

// WithGroup implements slog.Handler.
func (h *relay) WithGroup(name string) slog.Handler {
	groups := h.groups
	if name != "" {
		groups = append(slices.Clip(groups), name)
	}
	return &relay{Handler: h.Handler.WithGroup(name), groups: groups, fields: h.fields, out: h.out}
}

// appendFields appends an attribute, or all members of a group. Like slog's handlers
// it ignores an empty attribute.
func appendFields(fields []field, groups []string, a slog.Attr) []field {
	if a.Equal(slog.Attr{}) {
		return fields
	}
	v := a.Value.Resolve()
	path := groups
	if a.Key != "" {
		path = append(slices.Clip(groups), a.Key)
	}
	if v.Kind() != slog.KindGroup {
		return append(fields, field{path: path, value: v})
	}
	for _, member := range v.Group() {
		fields = appendFields(fields, path, member)
	}
	return fields
}
