package look

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"spamgate/blocklist/listfile"
	"spamgate/blocklist/sender"
)

// senderReader finds envelope senders in a log of Postfix, Exim, OpenSMTPD or
// spamgate, as text or JSON, or in a list of addresses.
type senderReader struct {
	Lines   int // of all kinds
	Other   int // that have no sender
	Hidden  int // senders that the log does not show whole (addresses = "hash")
	Senders int // that were found

	seen map[string]struct{} // ids of messages
}

// maxSeen bounds how many messages are remembered, to count each once although
// the log has several lines of it. Those of one message stand near each other.
const maxSeen = 500_000

// maxLogLine bounds a line; longer ones are not lines of a log.
const maxLogLine = 1 << 20

// read calls each with every message's sender.
func (s *senderReader) read(in io.Reader, each func(sender.Address)) error {
	content, _, err := listfile.Unpack(in, 0)
	if err != nil {
		return err
	}
	defer content.Close()
	s.seen = map[string]struct{}{}
	lines := bufio.NewScanner(content)
	lines.Buffer(nil, maxLogLine)
	for lines.Scan() {
		s.Lines++
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		text, id, ok := senderOf(line)
		if !ok {
			s.Other++
			continue
		}
		if s.again(id) {
			continue
		}
		a, err := sender.Parse(text)
		if err != nil {
			s.Hidden++
			continue
		}
		s.Senders++
		each(a)
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("a line of more than %d bytes is of no log: name one of Postfix or spamgate, or addresses, one a line", maxLogLine)
		}
		return fmt.Errorf("line %d: %w", s.Lines+1, err)
	}
	return nil
}

// again reports whether a message was met before.
func (s *senderReader) again(id string) bool {
	if id == "" {
		return false
	}
	if _, ok := s.seen[id]; ok {
		return true
	}
	if len(s.seen) == maxSeen {
		clear(s.seen)
	}
	s.seen[strings.Clone(id)] = struct{}{}
	return false
}

var (
	// from=<user@example.com>, or from="<user=x@example.com>" where slog has
	// quoted it. The path of a Postfix log ends before a comma, a space or the end.
	logFrom = regexp.MustCompile(`(?:^|[ ,;])from=(?:<(.*?)>(?:[ ,;]|$)|"<((?:[^"\\]|\\.)*)>")`)

	// The message's id: Postfix has it before the colon, spamgate as a key, OpenSMTPD as
	// the first half of an envelope's.
	postfixID   = regexp.MustCompile(`postfix[^ ]*\[\d+\]: ([0-9A-Za-z]{5,}): `)
	gateID      = regexp.MustCompile(`(?:^| )id=([^ ]+)`)
	openSMTPDID = regexp.MustCompile(`(?:^| )evpid=([0-9a-f]{8})[0-9a-f]{8} `)

	// The line of an arriving message in a log of Exim: time, id, "<=", sender.
	eximFrom = regexp.MustCompile(`(?:^| )([0-9A-Za-z]{6}-[0-9A-Za-z]{6,11}-[0-9A-Za-z]{2,4}) <= ([^ ]+)(?: |$)`)
)

// senderOf finds the sender in a line, and the id of its message if it has one.
func senderOf(line string) (address, id string, ok bool) {
	if line[0] == '{' {
		return senderOfJSON(line)
	}
	if m := logFrom.FindStringSubmatch(line); m != nil {
		address = m[1]
		if m[2] != "" {
			if text, err := strconv.Unquote(`"` + m[2] + `"`); err == nil {
				address = text
			}
		}
		if m := postfixID.FindStringSubmatch(line); m != nil && m[1] != "NOQUEUE" {
			id = m[1]
		} else if m := openSMTPDID.FindStringSubmatch(line); m != nil {
			id = m[1]
		} else if m := gateID.FindStringSubmatch(line); m != nil {
			id = m[1]
		}
		return address, id, true
	}
	if m := eximFrom.FindStringSubmatch(line); m != nil {
		return m[2], m[1], true
	}
	if line == "<>" || strings.Contains(line, "@") && !strings.ContainsAny(line, " \t") {
		return line, "", true
	}
	return "", "", false
}

func senderOfJSON(line string) (address, id string, ok bool) {
	var record struct {
		From *string `json:"from"`
		ID   string  `json:"id"`
	}
	if json.Unmarshal([]byte(line), &record) != nil || record.From == nil {
		return "", "", false
	}
	return *record.From, record.ID, true
}
