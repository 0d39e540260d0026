package listfile

import (
	"bufio"
	"strings"
)

// grammar reads the lines of a format.
type grammar struct {
	// comments are the bytes that start a comment line, unless directive follows.
	comments  string
	directive byte

	// line reads a line that is neither empty nor a comment.
	line func(o *output, line int, text string)

	// end, if not nil, passes on what line has held back. It is called after the
	// last line, and before a line is refused that line does not see.
	end func(o *output)

	// last, if not nil, is called after the last line.
	last func(o *output)

	// each means that no line depends on another, so that a file may be read in
	// parts.
	each bool

	// whole, if not nil, reads a file that does not consist of lines.
	whole func(o *output, in *bufio.Reader) error
}

// isComment reports whether a line with this content is a comment.
func (g *grammar) isComment(content string) bool {
	return strings.IndexByte(g.comments, content[0]) >= 0 &&
		(g.directive == 0 || len(content) < 2 || content[1] != g.directive)
}

// grammarOf returns a new grammar for a format.
func grammarOf(f Format) (*grammar, error) {
	switch f {
	case "", Plain:
		return &grammar{comments: "#", line: plainLine, each: true}, nil
	case Hosts:
		return &grammar{comments: "#", line: hostsLine, each: true}, nil
	case SpamAssassin:
		return &grammar{comments: "#", line: spamAssassinLine, each: true}, nil
	case Rspamd:
		return &grammar{comments: "#", line: rspamdLine, each: true}, nil
	case Adblock:
		var a adblock
		return &grammar{comments: "!", line: a.line, last: a.last}, nil
	case Dnsmasq:
		return &grammar{comments: "#", line: dnsmasqLine, each: true}, nil
	case URLs:
		return &grammar{comments: "#", line: urlsLine, each: true}, nil
	case PostfixAccess:
		p := table{read: postfixLine}
		return &grammar{comments: "#", line: p.line, end: p.end}, nil
	case Exim:
		p := table{read: eximLine}
		return &grammar{comments: "#", line: p.line, end: p.end}, nil
	case Sendmail:
		p := table{read: sendmailLine}
		return &grammar{comments: "#", line: func(o *output, line int, text string) {
			p.line(o, line, trim(text))
			p.end(o)
		}}, nil
	case RBLDNSD:
		var r rbldnsd
		return &grammar{comments: "#;", directive: '$', line: r.line}, nil
	case RPZ:
		var z zone
		return &grammar{comments: ";", line: z.line, end: z.end}, nil
	case CSV:
		return &grammar{whole: readCSV}, nil
	case JSON:
		return &grammar{whole: readJSON}, nil
	}
	return nil, UnknownFormat(f)
}
