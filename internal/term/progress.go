package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"spamgate/internal/text"
)

// Progress is a bar that shows the progress of a long run. It is shown on terminals only.
type Progress struct {
	w    io.Writer
	bar  *progressbar.ProgressBar
	rest int // columns after the bar, all of which are always written so that it does not move
}

// progressColumns is the largest width of the bar and its text.
const progressColumns = 100

// progressSteps is the resolution of the bar.
const progressSteps = 1000

// NewProgress returns a bar on w. It shows nothing if w is not a terminal.
func NewProgress(w io.Writer) Progress {
	if _, ok := terminal(w); !ok {
		return Progress{}
	}
	return NewBar(w, Width(w, progressColumns))
}

// NewBar returns a bar for a terminal with a number of columns.
func NewBar(w io.Writer, columns int) Progress {
	const width, rest = 24, 30 // columns of the bar, and of percentage and times beside it
	bar := progressbar.NewOptions(progressSteps,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(width),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(true),
	)
	return Progress{w, bar, max(10, columns-width-rest)}
}

// Show moves the bar to the part that is done, from 0 to 1, and shows what comes next. It
// ignores errors in drawing.
func (p Progress) Show(done float64, what string) {
	if p.bar == nil {
		return
	}
	p.bar.Describe(fmt.Sprintf("%-*s", p.rest, shortenWords(text.Printable(what), p.rest)))
	_ = p.bar.Set(int(done * progressSteps))
}

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

// Finish removes the bar.
func (p Progress) Finish() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// FinishInterrupted removes the bar and begins a new line, since the terminal has written ^C
// into this one.
func (p Progress) FinishInterrupted() {
	p.Finish()
	if p.bar != nil {
		fmt.Fprintln(p.w)
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
