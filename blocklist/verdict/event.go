package verdict

import "log/slog"

// Event is a kind of line about a message, in the log and in the history.
type Event struct {
	Text  string
	Level slog.Level

	// Action is the name of the line's action, "" if that depends on the message, or if there is none.
	Action string

	// Note: the line stands beside the one that tells what became of the message, so that totals do
	// not count it.
	Note bool

	// Plain: the line's action and reason tell all, and not the event and the reply.
	Plain bool

	// Delivered: somebody has the message, or it was dropped for good. Each such line counts by itself.
	Delivered bool

	// Class and Words say for pages what became of the message, if that is not what the action says:
	// the gate's own decision is to accept also if the next hop then refuses. Class is the name of
	// the action that it amounts to.
	Class, Words string
}

// The events that code asks for by name.
const (
	EventAccepted  = "accepted"
	EventMonitored = "monitored"
)

// Events are all kinds of lines about a message (docs/log.md), for log, history, totals and pages.
var Events = []Event{
	{Text: EventAccepted, Plain: true, Delivered: true},
	{Text: "refused", Plain: true},
	{Text: EventMonitored, Action: "monitor", Plain: true},
	{Text: "discarded", Level: slog.LevelWarn, Action: "discard", Plain: true, Delivered: true},
	{Text: "relay denied", Action: "reject"},
	{Text: "recipient unknown", Action: "reject"},
	{Text: "message refused"},
	{Text: "command refused", Action: "reject"},
	{Text: "refused by the next hop", Class: "reject", Words: "refused by the server"},
	{Text: "delivered before", Action: "accept", Plain: true, Delivered: true, Class: "accept", Words: "delivered before"},
	{Text: "delivered to some recipients", Action: "accept", Plain: true, Delivered: true, Class: "defer", Words: "delivered to some"},
	{Text: "other recipients go first", Action: "defer"},
	{Text: "some recipients have the message", Action: "defer"},
	{Text: "lists cannot be asked", Level: slog.LevelError, Action: "defer"},
	{Text: "next hop failed", Level: slog.LevelError, Action: "defer"},
	{Text: "no answer from the next hop", Level: slog.LevelError, Action: "defer"},
	{Text: "message not stored", Level: slog.LevelError, Action: "defer"},
	{Text: "given up by the client", Class: "monitor", Words: "given up"},
	{Text: "header address not understood", Action: "accept", Note: true, Class: "monitor", Words: "only logged"},
	{Text: "header field without an address", Action: "accept", Note: true, Class: "monitor", Words: "only logged"},
	{Text: "unfinished message not removed", Level: slog.LevelError, Note: true, Class: "monitor", Words: "only logged"},
	{Text: "who has the message is not on disk: if the gate restarts before the client comes again, some get it twice", Level: slog.LevelWarn, Note: true, Class: "monitor", Words: "only logged"},
}

var eventsByText = func() map[string]*Event {
	byText := make(map[string]*Event, len(Events))
	for i := range Events {
		byText[Events[i].Text] = &Events[i]
	}
	return byText
}()

// EventOf returns the event of a line with this text. Of an unknown one only the Text is set.
func EventOf(text string) Event {
	if e := eventsByText[text]; e != nil {
		return *e
	}
	return Event{Text: text}
}
