package decisions

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// csvColumns are the columns of a CSV, with the cell of each.
var csvColumns = []struct {
	name string
	cell func(d *Decision) string
}{
	{"time", func(d *Decision) string { return csvTime(d.Time) }},
	{"id", func(d *Decision) string { return d.ID }},
	{"event", func(d *Decision) string { return d.Event }},
	{"action", func(d *Decision) string { return d.Action }},
	{"count", func(d *Decision) string { return strconv.Itoa(d.Count) }},
	{"last", func(d *Decision) string { return csvTime(d.Last) }},
	{"door", func(d *Decision) string { return d.Door }},
	{"listener", func(d *Decision) string { return d.Listener }},
	{"client", func(d *Decision) string { return d.Client }},
	{"helo", func(d *Decision) string { return d.Helo }},
	{"sender", func(d *Decision) string { return d.Sender }},
	{"recipients", func(d *Decision) string { return strings.Join(d.Recipients, " ") }},
	{"more_recipients", func(d *Decision) string { return csvNumber(int64(d.MoreRecipients)) }},
	{"header_senders", func(d *Decision) string { return strings.Join(d.HeaderSenders, " ") }},
	{"message_id", func(d *Decision) string { return d.MessageID }},
	{"list", func(d *Decision) string { return d.List }},
	{"entry", func(d *Decision) string { return d.Entry }},
	{"reason", func(d *Decision) string { return d.Reason }},
	{"reply", func(d *Decision) string { return d.Reply }},
	{"size", func(d *Decision) string { return csvNumber(d.Size) }},
	{"duration", func(d *Decision) string { return d.Duration.String() }},
	{"attributes", func(d *Decision) string { return attrText(d.Attrs) }},
}

// CSV writes decisions as comma-separated values, after a line with the names of the columns.
// No cell is a formula for a spreadsheet.
type CSV struct {
	out   *csv.Writer
	first []string
	begun bool
}

// NewCSV returns a CSV that writes to w. The first columns are those that are named, and then those
// of a decision.
func NewCSV(w io.Writer, first ...string) *CSV { return &CSV{out: csv.NewWriter(w), first: first} }

// Write writes a decision, with the cells of the first columns.
func (c *CSV) Write(d Decision, first ...string) error {
	if err := c.begin(); err != nil {
		return err
	}
	var cells []string
	for _, text := range first {
		cells = append(cells, Cell(text))
	}
	for _, column := range csvColumns {
		cells = append(cells, Cell(column.cell(&d)))
	}
	return c.out.Write(cells)
}

// Flush writes what is buffered, and the names of the columns if there is no decision.
func (c *CSV) Flush() error {
	if err := c.begin(); err != nil {
		return err
	}
	c.out.Flush()
	return c.out.Error()
}

func (c *CSV) begin() error {
	if c.begun {
		return nil
	}
	c.begun = true
	names := slices.Clone(c.first)
	for _, column := range csvColumns {
		names = append(names, column.name)
	}
	return c.out.Write(names)
}

// Cell returns the text of a cell that no spreadsheet takes for a formula, and that no terminal
// obeys.
func Cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		text = "'" + text
	}
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

func csvTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// csvNumber returns a number, "" for 0, which means that it is not known.
func csvNumber(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// attrText returns attributes as key=value, values with white space, quotes or "=" quoted.
func attrText(attrs []Attr) string {
	var b strings.Builder
	for i, a := range attrs {
		if i > 0 {
			b.WriteByte(' ')
		}
		value := a.Value
		if strings.ContainsAny(value, " \t\r\n\"=") || value == "" {
			value = strconv.Quote(value)
		}
		b.WriteString(a.Key + "=" + value)
	}
	return b.String()
}
