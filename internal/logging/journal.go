package logging

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
)

// journalSocket is the socket of journald's own protocol
// (systemd.io/JOURNAL_NATIVE_PROTOCOL).
var journalSocket = "/run/systemd/journal/socket"

// newJournal opens systemd's journal. MESSAGE is the line that standard error would
// get, and each attribute is a field SPAMGATE_KEY, so that journalctl SPAMGATE_ID=…
// finds it.
//
// The socket is connected, unlike that of go-systemd's journal.Send, so that the
// kernel reports when a journald that hung accepts entries again.
func newJournal(o Options) (*Log, error) {
	path := journalSocket
	l, err := newDatagrams(o, encodeJournal, func() (net.Conn, error) { return net.DialTimeout("unixgram", path, socketTimeout) })
	if err != nil {
		return nil, fmt.Errorf(`no systemd journal on this machine: %w; write output = "stderr" or "syslog" in [log]`, err)
	}
	return l, nil
}

// encodeJournal appends an entry for journald: a line for each field. The values are
// escaped, and so contain no newline.
func encodeJournal(b []byte, r slog.Record, line []byte, h *relay) ([]byte, int) {
	const message = "MESSAGE="
	b = append(append(b, message...), line...)
	b = append(b, "PRIORITY="...)
	b = strconv.AppendInt(b, int64(severity(r.Level)), 10)
	b = append(b, "\nSYSLOG_IDENTIFIER="+identifier+"\nSYSLOG_FACILITY="...)
	b = strconv.AppendInt(b, facilityMail, 10)
	b = append(b, "\nSPAMGATE_TIME="...) // journald adds the time of arrival
	b = r.Time.AppendFormat(b, time.RFC3339Nano)
	b = append(b, '\n')
	for _, f := range h.fields {
		b = appendJournalField(b, f)
	}
	var few [1]field // most attributes are in no group
	r.Attrs(func(a slog.Attr) bool {
		for _, f := range appendFields(few[:0], h.groups, a) {
			b = appendJournalField(b, f)
		}
		return true
	})
	return b, len(message)
}

func appendJournalField(b []byte, f field) []byte {
	b = append(b, fieldName(f.path)...)
	b = append(b, '=')
	b = append(b, fieldText(f.value)...)
	return append(b, '\n')
}

// maxFieldName is the longest name that journald takes
// (systemd.journal-fields(7)).
const maxFieldName = 64

// fieldName returns the name of an attribute in the journal: upper case, with "_"
// between groups and in place of characters that journald refuses.
func fieldName(path []string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, identifier+"_"+strings.Join(path, "_"))
	return name[:min(len(name), maxFieldName)]
}

// fieldText returns the text of a value, escaped if it could control a terminal.
func fieldText(v slog.Value) string {
	var s string
	switch v.Kind() {
	case slog.KindTime:
		s = v.Time().Format(time.RFC3339Nano)
	case slog.KindAny:
		s = fmt.Sprintf("%+v", v.Any()) // as slog's text has it
	default:
		s = v.String()
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return !visible(r) }) {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}
