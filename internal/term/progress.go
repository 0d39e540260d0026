package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"spamgate/internal/text"
)

// Progress is a line that shows the progress of a long run. It is shown on terminals only.
type Progress struct{ line *line }

// line is what is shown.
type line struct {
	w       io.Writer
	columns int // all of which are always written, so that nothing of the line before remains
	began   time.Time

	mu    sync.Mutex
	shown time.Time
}

// progressColumns is the largest width of the line.
const progressColumns = 100

// NewProgress returns a line on w. It shows nothing if w is not a terminal.
func NewProgress(w io.Writer) Progress {
	if _, ok := terminal(w); !ok {
		return Progress{}
	}
	return NewLine(w, Width(w, progressColumns))
}

// NewLine returns a line for a terminal with a number of columns.
func NewLine(w io.Writer, columns int) Progress {
	return Progress{&line{w: w, columns: columns - 1, began: time.Now()}} // some terminals wrap a full line
}

// Show shows which part is done, from 0 to 1, what comes next, and how long it may take. It does so
// ten times a second at most.
func (p Progress) Show(done float64, what string) {
	if p.line == nil {
		return
	}
	l, now := p.line, time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if done < 1 && now.Sub(l.shown) < 100*time.Millisecond {
		return
	}
	l.shown = now
	left := ""
	if taken := now.Sub(l.began); taken > time.Second && done > 0.01 {
		left = text.Duration(time.Duration(float64(taken)*(1-done)/done).Round(time.Second)) + " left"
	}
	part := fmt.Sprintf("%3.0f%%  ", 100*done)
	room := max(10, l.columns-len(part)-len(left)-2)
	l.write(fmt.Sprintf("%s%-*s  %s", part, room, shortenWords(text.Printable(what), room), left))
}

// write writes a text in the place of the one before. Errors in drawing do not matter.
func (l *line) write(text string) { fmt.Fprintf(l.w, "\r%-*.*s\r", l.columns, l.columns, text) }

// shortenWords cuts a text that is longer than a number of characters, between words: half a
// number would be another number.
func shortenWords(s string, width int) string {
	const dots = "..."
	runes := []rune(s)
	if len(runes) <= width {
		return s
	}
	head := string(runes[:width-len(dots)+1]) // with the character after the cut, which may end a word
	if space := strings.LastIndexByte(head, ' '); space > 0 {
		return strings.TrimRight(head[:space], " ,:") + dots
	}
	return string(runes[:width-len(dots)]) + dots // one long word
}

// Finish removes the line.
func (p Progress) Finish() {
	if p.line != nil {
		p.line.write("")
	}
}

// FinishInterrupted removes the line and begins a new line, since the terminal has written ^C
// into this one.
func (p Progress) FinishInterrupted() {
	p.Finish()
	if p.line != nil {
		fmt.Fprintln(p.line.w)
	}
}

// terminal returns the file descriptor of w, if w is a terminal.
func terminal(w io.Writer) (fd int, ok bool) {
	if wrapped, ok := w.(interface{ Unwrap() io.Writer }); ok {
		w = wrapped.Unwrap()
	}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	return int(file.Fd()), true
}

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Width returns the number of columns for text on w: those of the terminal and at most
// most, or most if w is not a terminal.
func Width(w io.Writer, most int) int {
	if fd, ok := terminal(w); ok {
		if columns, _, err := term.GetSize(fd); err == nil && columns > 0 {
			return min(columns, most)
		}
	}
	return most
}
