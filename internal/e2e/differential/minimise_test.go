package differential

import (
	"slices"
	"strings"
)

// minimise returns the outcome of a message with as little as possible of a finding's header,
// which is a finding too. It leaves out pieces, first large ones, then small ones.
func minimise(o outcome, try func(messages []string) []outcome) outcome {
	header := func(m string) string { h, _, _ := strings.Cut(m, "\r\n\r\n"); return h }
	if h := header(o.message); len(h)+4 < len(o.message) {
		o = firstFinding(o, try([]string{h + "\r\n\r\n"}))
	}
	for size := len(header(o.message)) / 2; size > 0; {
		h := header(o.message)
		rest := o.message[len(h):]
		shorter := withoutLines(h, rest)
		for pos := 0; pos < len(h) && len(shorter) < batch; pos += size {
			shorter = append(shorter, h[:pos]+h[min(pos+size, len(h)):]+rest)
		}
		least := firstFinding(o, try(shorter))
		if least.message == o.message {
			size /= 2
		}
		o = least
		size = min(size, len(header(o.message)))
	}
	return o
}

// withoutLines returns the message without each of its header's lines.
func withoutLines(header, rest string) []string {
	lines := strings.Split(header, "\r\n")
	var shorter []string
	for i := range lines[:min(len(lines)-1, batch/2)] {
		shorter = append(shorter, strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\r\n")+rest)
	}
	return shorter
}

// firstFinding returns the first outcome that shows a reader one of the listed senders that the
// given one shows it, or else the given one.
func firstFinding(o outcome, outcomes []outcome) outcome {
	for _, shorter := range outcomes {
		if shorter.isFinding() && o.shares(shorter) {
			return shorter
		}
	}
	return o
}

// shares reports whether a reader sees the same listed sender in both messages.
func (o outcome) shares(other outcome) bool {
	for reader, addresses := range o.listed {
		for _, a := range addresses {
			if slices.Contains(other.listed[reader], a) {
				return true
			}
		}
	}
	return false
}
