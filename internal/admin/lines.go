package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// This file has the replies that are JSON lines: a header, a line for each entry, and an end,
// without which the reply is incomplete.

// lineWriter writes JSON lines, as long as the caller reads them.
type lineWriter struct {
	call    *call
	control *http.ResponseController
	out     *bufio.Writer
	json    *json.Encoder
	written int
}

// lines returns what writes the lines of a response.
func (c *call) lines() *lineWriter {
	l := &lineWriter{call: c, control: http.NewResponseController(c.w), out: bufio.NewWriterSize(c.w, 32<<10)}
	l.json = json.NewEncoder(l.out)
	l.json.SetEscapeHTML(false)
	return l
}

func (l *lineWriter) line(value any) error {
	if !l.call.begun {
		l.call.begun = true
		l.call.w.Header().Set("Content-Type", "application/jsonl")
		l.call.w.Header().Set("Cache-Control", "no-store")
	}
	// Not for each line: lines are short, and there may be millions.
	if l.written%64 == 0 {
		_ = l.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	l.written++
	return l.json.Encode(value)
}

// end writes the last line.
func (l *lineWriter) end(value any) {
	if l.line(value) == nil {
		_ = l.out.Flush() // the caller may be gone
	}
}

// reply is a response that is read in parts.
type reply struct {
	io.ReadCloser
	lines *json.Decoder
}

// next decodes the next line.
func (r *reply) next(line any) error {
	if err := r.lines.Decode(line); err != nil {
		return incomplete(err)
	}
	return nil
}

func incomplete(err error) error { return fmt.Errorf("the gate's response is incomplete: %w", err) }

// endError returns the error in a last line, or nil.
func endError(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// Day is the format of a day, in UTC.
const Day = time.DateOnly

// unusedRequest asks for the entries of a list without matches since a day.
type unusedRequest struct {
	since time.Time
	here  bool // on this gate alone
}

func (q *unusedRequest) encode() (url.Values, io.Reader) {
	v := url.Values{"since": {q.since.UTC().Format(Day)}}
	if q.here {
		v.Set("here", "true")
	}
	return v, nil
}

func (q *unusedRequest) decode(c *call) (err error) {
	v := c.r.URL.Query()
	q.here = v.Get("here") == "true"
	if q.since, err = time.Parse(Day, v.Get("since")); err != nil {
		return fmt.Errorf("since=%q is not a day, such as 2026-12-31", v.Get("since"))
	}
	return nil
}

// unused responds with a line for each entry. An error before the first line is a
// status, a later one is in the last line.
func (c *call) unused(q unusedRequest) (None, error) {
	l := c.lines()
	end, err := c.options.Gate.Unused(c.ctx, c.list, q.since, q.here,
		func(h UnusedHeader) error { return l.line(h) }, func(e UnusedEntry) error { return l.line(e) })
	if err != nil && !c.begun {
		return None{}, err
	}
	end.End = true
	if err != nil {
		end.Error = err.Error()
	}
	l.end(end)
	return None{}, nil
}

// Unused lists the entries of a list without matches since a day, see [Gate]. It calls begin
// once, then each for every entry, and stops at their first error.
func (c *Client) Unused(ctx context.Context, list string, since time.Time, here bool, begin func(UnusedHeader) error, each func(UnusedEntry) error) (end UnusedEnd, err error) {
	lines, err := send(ctx, c, opUnused, unusedRequest{since, here}, list)
	if err != nil {
		return end, err
	}
	defer lines.Close()
	var header UnusedHeader
	if err = lines.next(&header); err == nil {
		err = begin(header)
	}
	if err != nil {
		return end, err
	}
	for {
		var line struct {
			UnusedEntry
			UnusedEnd
		}
		if err := lines.next(&line); err != nil {
			return end, err
		}
		if line.End {
			return line.UnusedEnd, endError(line.Error)
		}
		if err := each(line.UnusedEntry); err != nil {
			return end, err
		}
	}
}
