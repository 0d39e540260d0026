package logging

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// MaxLine is the maximum length of a line in bytes, including its newline; in syslog
// and the journal that of the message.
const MaxLine = 4096

const (
	// lineOverhead is the space for time and level with their keys, in any format.
	lineOverhead = 128

	// attrOverhead is the space for quotes and separators of an attribute.
	attrOverhead = 8

	// minShare is the least size to which a value is cut. If there is less space
	// for each, the last attributes are omitted.
	minShare = 32
)

// limiter is a handler that keeps lines within MaxLine. It cuts the longest values of
// a record to the same size, so that short ones, such as id and client, stay whole.
type limiter struct {
	slog.Handler
	used   int // bytes of the attributes that WithAttrs added
	prefix int // bytes of the open groups' names, which precede each key
}

// Handle cuts a record if it is too long, and passes it on.
func (h *limiter) Handle(ctx context.Context, r slog.Record) error {
	space := MaxLine - lineOverhead - h.used
	size := textCost(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		size += h.attrCost(a)
		return size <= space
	})
	if size > space {
		return h.handleLong(ctx, r, space)
	}
	return h.Handler.Handle(ctx, r)
}

// handleLong cuts a record to what fits in space, and passes it on.
func (h *limiter) handleLong(ctx context.Context, r slog.Record, space int) error {
	return h.Handler.Handle(ctx, h.shorten(r, space))
}

// WithAttrs implements slog.Handler. It cuts texts to 256 bytes, since they are in
// each line.
func (h *limiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	const most = 256
	with := *h
	cut := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		cut[i] = slog.Attr{Key: a.Key, Value: cutValue(a.Value, most)}
		with.used += h.attrCost(cut[i])
	}
	with.Handler = h.Handler.WithAttrs(cut)
	return &with
}

// WithGroup implements slog.Handler.
func (h *limiter) WithGroup(name string) slog.Handler {
	with := *h
	with.Handler = h.Handler.WithGroup(name)
	with.prefix += textCost(name) + attrOverhead
	return &with
}

// shorten returns a record that fits in space.
func (h *limiter) shorten(r slog.Record, space int) slog.Record {
	var attrs []slog.Attr
	var starts []int // of each attribute's values in costs
	var keys []int   // the sizes of their keys
	costs := []int{textCost(r.Message)}
	r.Attrs(func(a slog.Attr) bool {
		attrs, starts = append(attrs, a), append(starts, len(costs))
		keys = append(keys, addCosts(&costs, a, h.prefix))
		space -= keys[len(keys)-1]
		return true
	})
	share := fairShare(costs, space)
	omitted := 0
	for share < minShare && len(attrs) > 0 {
		if omitted == 0 {
			space -= len("omitted_attributes=") + attrOverhead
		}
		last := len(attrs) - 1
		omitted++
		space += keys[last]
		attrs = attrs[:last]
		costs = costs[:starts[last]]
		share = fairShare(costs, space)
	}
	short := slog.NewRecord(r.Time, r.Level, cutText(r.Message, max(share, minShare)), r.PC)
	for _, a := range attrs {
		short.AddAttrs(slog.Attr{Key: a.Key, Value: cutValue(a.Value, share)})
	}
	if omitted > 0 {
		short.AddAttrs(slog.Int("omitted_attributes", omitted))
	}
	return short
}

// fairShare returns the size to which values must be cut to fit in space together.
// Smaller values leave their space to the others.
func fairShare(costs []int, space int) int {
	for i, c := range slices.Sorted(slices.Values(costs)) {
		left := len(costs) - i
		if c*left > space {
			return space / left
		}
		space -= c
	}
	return MaxLine
}

// attrCost returns the maximum size of an attribute in a line.
func (h *limiter) attrCost(a slog.Attr) int {
	var few [4]int
	costs := few[:0]
	size := addCosts(&costs, a, h.prefix)
	for _, c := range costs {
		size += c
	}
	return size
}

// addCosts appends the sizes of an attribute's values, several for a group, to costs.
// It returns the size of keys, quotes and separators.
func addCosts(costs *[]int, a slog.Attr, prefix int) (keys int) {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		*costs = append(*costs, valueCost(v))
		return prefix + textCost(a.Key) + attrOverhead
	}
	prefix += textCost(a.Key) + attrOverhead
	keys = prefix
	for _, member := range v.Group() {
		keys += addCosts(costs, member, prefix)
	}
	return keys
}

// valueCost returns the maximum size of a value.
func valueCost(v slog.Value) int {
	switch v.Kind() {
	case slog.KindString:
		return textCost(v.String())
	case slog.KindAny:
		text := anyText(v.Any())
		if _, ok := v.Any().(error); ok {
			return textCost(text)
		}
		inJSON, _ := json.Marshal(v.Any()) // slog writes a short error in place of what JSON cannot hold
		return max(textCost(text), textCost(string(inJSON)))
	}
	return max(len(v.String()), len(time.RFC3339Nano)+10)
}

// anyText returns a value as slog's text handler writes it.
func anyText(v any) string {
	switch v := v.(type) {
	case error:
		return v.Error()
	case []byte:
		return string(v)
	}
	return fmt.Sprintf("%+v", v)
}

// cutValue cuts a value, or each member of a group.
func cutValue(v slog.Value, most int) slog.Value {
	v = v.Resolve()
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(cutText(v.String(), most))
	case slog.KindAny:
		if valueCost(v) > most {
			return slog.StringValue(cutText(anyText(v.Any()), most))
		}
	case slog.KindGroup:
		members := slices.Clone(v.Group())
		for i, m := range members {
			members[i].Value = cutValue(m.Value, most)
		}
		return slog.GroupValue(members...)
	}
	return v
}

// cutText cuts a text, and appends its full length.
func cutText(s string, most int) string {
	if textCost(s) <= most {
		return s
	}
	mark := " [... " + strconv.Itoa(len(s)) + " bytes]"
	end, size := 0, len(mark)+2
	for end < len(s) {
		r, n := utf8.DecodeRuneInString(s[end:])
		if size += runeCost(r, n); size > most {
			break
		}
		end += n
	}
	return s[:end] + mark
}

// textCost returns the maximum size of a text in any format, escaped and with quotes.
func textCost(s string) int {
	size := 2
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c <= '~' {
			size++
			if c == '"' || c == '\\' {
				size++
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		size += runeCost(r, n)
		i += n
	}
	return size
}

// runeCost returns the maximum size of a character of n bytes: that of \u001b, or of
// \udb40\udc01 beyond U+FFFF.
func runeCost(r rune, n int) int {
	switch {
	case r == '"' || r == '\\':
		return 2
	case visible(r):
		return n
	case r < 0x10000:
		return 6
	}
	return 12
}
