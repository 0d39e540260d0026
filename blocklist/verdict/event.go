package verdict

// Event is a kind of line about a message, in the log and in the history.
type Event struct {
	Text string

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
	{Text: EventMonitored, Plain: true, Class: "monitor", Words: "only logged"},
	{Text: "discarded", Plain: true, Delivered: true},
	{Text: "relay denied", Class: "reject", Words: "refused"},
	{Text: "recipient unknown", Class: "reject", Words: "refused"},
	{Text: "message refused", Class: "reject", Words: "refused"},
	{Text: "command refused", Class: "reject", Words: "refused"},
	{Text: "refused by the next hop", Class: "reject", Words: "refused by the server"},
	{Text: "delivered before", Plain: true, Delivered: true, Class: "accept", Words: "delivered before"},
	{Text: "delivered to some recipients", Plain: true, Delivered: true, Class: "defer", Words: "delivered to some"},
	{Text: "other recipients go first", Class: "defer", Words: "deferred"},
	{Text: "some recipients have the message", Class: "defer", Words: "deferred"},
	{Text: "lists cannot be asked", Class: "defer", Words: "deferred"},
	{Text: "next hop failed", Class: "defer", Words: "deferred"},
	{Text: "no answer from the next hop", Class: "defer", Words: "deferred"},
	{Text: "message not stored", Class: "defer", Words: "deferred"},
	{Text: "given up by the client", Class: "monitor", Words: "given up"},
	{Text: "header address not understood", Note: true, Class: "monitor", Words: "only logged"},
	{Text: "header field without an address", Note: true, Class: "monitor", Words: "only logged"},
	{Text: "unfinished message not removed", Note: true, Class: "monitor", Words: "only logged"},
	{Text: "who has the message is not on disk: if the gate restarts before the client comes again, some get it twice", Note: true, Class: "monitor", Words: "only logged"},
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
