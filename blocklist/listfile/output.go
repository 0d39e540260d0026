package listfile

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"spamgate/blocklist/sender"
)

// output takes what the grammars of all formats read. It counts, and does what all
// formats have in common.
type output struct {
	options Options
	entry   func(Entry) error
	problem func(Problem)
	result  Result
	tallies [numNotes]tally
	err     error // the first error; nothing is passed on after it
}

// newOutput returns an output. All entries of a file expire by the same clock.
func newOutput(o Options, entry func(Entry) error, problem func(Problem)) *output {
	if problem == nil {
		problem = func(Problem) {}
	}
	if o.Now == 0 {
		o.Now = time.Now().Unix()
	}
	return &output{options: o, entry: entry, problem: problem}
}

// fail ends the file with an error.
func (o *output) fail(err error) { o.err = cmp.Or(o.err, err) }

// add passes an entry on, unless it has expired.
func (o *output) add(e Entry) {
	if o.err != nil {
		return
	}
	if e.Until != 0 && e.Until <= o.options.Now {
		o.result.Expired++
		return
	}
	o.result.Entries++
	o.err = o.entry(e)
}

// warn notes an entry that covers names of the owner's customers, such as github.io.
func (o *output) warn(e Entry, line int, text string) {
	if e.Kind != sender.KindDomain && e.Kind != sender.KindSubdomains || o.options.AllowPublicSuffix {
		return
	}
	if _, private := suffixOf(strings.TrimPrefix(e.Key, "*.")); private {
		o.remark(notePrivate, line, text)
	}
}

// refuse reports an invalid or unsupported line.
func (o *output) refuse(line int, p Problem) {
	p.Line, p.Text = line, clip(p.Text)
	if p.Unsupported {
		o.result.Unsupported++
	} else {
		o.result.Invalid++
	}
	o.problem(p)
}

// merge adds the counts of an output for a later part of the file.
func (o *output) merge(p *output) {
	o.result.Entries += p.result.Entries
	o.result.Invalid += p.result.Invalid
	o.result.Unsupported += p.result.Unsupported
	o.result.Expired += p.result.Expired
	o.result.Lines += p.result.Lines
	for i, t := range p.tallies {
		o.tallies[i].merge(t)
	}
}

// finish returns the result with its notes.
func (o *output) finish() Result {
	o.result.Skipped = o.tallies[noteLocalhost].lines + o.tallies[noteSetting].lines + o.tallies[noteDataset].lines
	o.result.Unread = o.tallies[noteUnread].lines
	for n, t := range o.tallies {
		if t.lines > 0 {
			o.result.Notes = append(o.result.Notes, t.sentence(note(n)))
		}
	}
	return o.result
}

// note is a kind of line that is skipped on purpose, or looks risky.
type note int

const (
	noteLocalhost note = iota
	noteSetting
	noteDirective
	noteDataset
	noteRecord
	notePrivate
	noteUnread
	numNotes
)

var noteTexts = [numNotes]string{
	noteLocalhost: "localhost and the like are skipped",
	noteSetting:   "a setting that lists no senders is skipped",
	noteDirective: "a directive about the DNS zone or IP addresses is ignored",
	noteDataset:   "a $DATASET of another type than dnset or dnhash is skipped",
	noteRecord:    "a record that is no policy is skipped",
	noteUnread:    "an exception that cannot be read; for its name, no rule for that name or for a domain above counts",
	notePrivate:   "a name below which its owner's customers have names; the entry covers them all",
}

// tally counts the lines of a note.
type tally struct {
	lines, first int
	text         string // text of the first
}

// remark counts a line of a note.
func (o *output) remark(n note, line int, text string) {
	t := &o.tallies[n]
	if t.lines == 0 {
		t.first, t.text = line, clip(text)
	}
	t.lines++
}

func (t *tally) merge(u tally) {
	if t.lines == 0 {
		t.first, t.text = u.first, u.text
	}
	t.lines += u.lines
}

func (t tally) sentence(n note) string {
	if t.lines == 1 {
		return fmt.Sprintf("line %d: %q: %s", t.first, t.text, noteTexts[n])
	}
	return fmt.Sprintf("%d lines, the first is line %d: %q: %s", t.lines, t.first, t.text, noteTexts[n])
}

// head returns at most MaxLine bytes of a line, without its line end and without a
// byte order mark, which any line may have in files that were concatenated. It reports
// whether the line is longer.
func head(line string) (_ string, long bool) {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	line = strings.TrimPrefix(line, bom)
	if len(line) > MaxLine {
		return line[:MaxLine], true
	}
	return line, false
}

// take reads one line. It handles comments, and mistakes that all formats share.
func (o *output) take(g *grammar, line int, text string, long bool) {
	if strings.IndexByte(text, '\r') >= 0 {
		// Checked in comments too: if all lines of a file end in a bare CR, the
		// first comment would swallow every entry.
		o.refuseUnseen(g, line, Problem{
			Text: text,
			What: "a carriage return inside the line",
			Hint: "lines end in LF or CRLF; save the file with such line ends",
		})
		return
	}
	content := text
	if text == "" || text[0] <= ' ' { // nearly every line has nothing to trim
		content = strings.TrimLeft(text, " \t")
	}
	if content == "" && !long || content != "" && g.isComment(content) {
		return
	}
	if long {
		o.refuseUnseen(g, line, tooLong(content))
		return
	}
	g.line(o, line, text)
}

// refuseUnseen refuses a line that its grammar does not see.
func (o *output) refuseUnseen(g *grammar, line int, p Problem) {
	if g.end != nil {
		g.end(o)
	}
	o.refuse(line, p)
}

func tooLong(text string) Problem {
	return Problem{
		Text:    text,
		What:    fmt.Sprintf("a line of more than %d bytes", MaxLine),
		Hint:    "write one entry a line",
		TooLong: true,
	}
}
