package logging

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// relay is a handler that has slog's format a record and hands the line on to
// something that takes more than bytes, such as a severity. The time is left
// out: syslog and journal have their own.
type relay struct {
	slog.Handler // writes to out.line

	// groups and fields are what WithGroup and WithAttrs added: names of the
	// open groups, and attributes with the groups that they are in.
	groups []string
	fields []field

	out *relayOutput
}

// field is an attribute outside of its groups.
type field struct {
	path  []string // groups, then the key
	value slog.Value
}

// relayOutput is what a handler and all that were made from it share.
type relayOutput struct {
	mu     sync.Mutex
	line   bytes.Buffer
	send   sendFunc
	stderr io.Writer
}

// sendFunc sends a line, which has no newline. Attributes that are not in the
// record are in the handler.
type sendFunc func(r slog.Record, line string, h *relay) error

func newRelay(o Options, send sendFunc) *relay {
	out := &relayOutput{send: send, stderr: o.Stderr}
	return &relay{Handler: newHandler(&out.line, o), out: out}
}

// Handle sends a record. Where that fails the line goes to standard error.
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
	line := bytes.TrimSuffix(out.line.Bytes(), []byte("\n"))
	err := out.send(r, string(line), h)
	if err != nil {
		out.stderr.Write(out.line.Bytes()) // the last resort: there is nowhere to report its failure
	}
	return err
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

// appendFields appends an attribute, or all those in it if it is a group. As
// in slog's handlers the empty attribute is none.
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
