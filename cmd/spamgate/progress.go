package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"spamgate/internal/hashlab"
	"spamgate/internal/text"
)

// progress is a bar that shows how far a long run is, on a terminal only: in a
// file or a pipe it would be noise.
type progress struct {
	w    io.Writer
	bar  *progressbar.ProgressBar
	room int // columns for what comes next, always all of them, so that the bar stands still
}

// progressSteps is how finely the bar knows what is done.
const progressSteps = 1000

// newProgress makes a bar on w. Where w is no terminal nothing is ever shown.
func newProgress(w io.Writer) progress {
	if _, ok := terminal(w); !ok {
		return progress{}
	}
	return newBar(w, terminalWidth(w, hashlab.TextWidth))
}

// newBar makes a bar for a terminal of so many columns.
func newBar(w io.Writer, columns int) progress {
	const width, rest = 24, 30 // columns of the bar, and of percentage and times beside it
	bar := progressbar.NewOptions(progressSteps,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetWidth(width),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(true),
	)
	return progress{w, bar, max(10, columns-width-rest)}
}

// show moves the bar to the part that is done, from 0 to 1, and says what comes
// next. That the bar can't be drawn is no reason to stop.
func (p progress) show(done float64, what string) {
	if p.bar == nil {
		return
	}
	p.bar.Describe(fmt.Sprintf("%-*s", p.room, shortenWords(text.Printable(what), p.room)))
	_ = p.bar.Set(int(done * progressSteps))
}

// shortenWords leaves out the end of a text that is longer than room characters,
// whole words of it: half a number would be another number.
func shortenWords(s string, room int) string {
	const dots = "..."
	runes := []rune(s)
	if len(runes) <= room {
		return s
	}
	head := string(runes[:room-len(dots)+1]) // with the character after the cut, which may end a word
	if space := strings.LastIndexByte(head, ' '); space > 0 {
		return strings.TrimRight(head[:space], " ,:") + dots
	}
	return string(runes[:room-len(dots)]) + dots // one long word
}

// finish takes the bar away.
func (p progress) finish() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}

// finishInterrupted takes the bar away and begins a new line: where Ctrl-C was
// pressed the terminal has written ^C into this one.
func (p progress) finishInterrupted() {
	p.finish()
	if p.bar != nil {
		fmt.Fprintln(p.w)
	}
}

// terminal is w's file descriptor, where w is a terminal.
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

// terminalWidth is how many columns there are for text on w: those of the
// terminal, but not more than most, which it also is where w is no terminal.
func terminalWidth(w io.Writer, most int) int {
	if fd, ok := terminal(w); ok {
		if columns, _, err := term.GetSize(fd); err == nil && columns > 0 {
			return min(columns, most)
		}
	}
	return most
}
