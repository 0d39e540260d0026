package smtpfilter

import (
	"fmt"
	"log/slog"
	"time"

	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/wire"
)

// limited is the reply to a client that is over a limit, and its line in the
// log. Whoever has too many connections or errors hears 421, which ends the
// connection; what there is too much of otherwise is refused for now (RFC 3463:
// X.7.1 stands for what the policy forbids, X.5.3 for too many recipients).
func (l *Listener) limited(c *wire.Conn, hit limit.Result) wire.Reply {
	reply := limitReply(hit)
	l.logConn(c, slog.LevelInfo, "limited",
		slog.String("limit", hit.Limit),
		slog.String("of", hit.Scope),
		slog.Int("value", hit.Value),
		slog.String("key", hit.Key()),
		slog.String("reply", reply.String()),
		slog.String("hint", remedy(hit)))
	return reply
}

// remedy says what to write in the configuration if the client should have been
// served.
func remedy(hit limit.Result) string {
	if hit.Scope == limit.All {
		return fmt.Sprintf("if the machine can serve more, write max_connections = %d in the listener's table; each can take two file descriptors", 2*hit.Value)
	}
	return fmt.Sprintf("if this client is welcome, put its address into limits_exempt, or write %s = %d (0: no limit) in the listener's table", hit.Key(), 2*hit.Value)
}

func limitReply(hit limit.Result) wire.Reply {
	who := "from your address"
	switch hit.Scope {
	case limit.Network:
		who = "from your network"
	case limit.All:
		who = "at this server"
	}
	switch hit.Limit {
	case limit.MessagesPerMinute:
		return wire.NewReply(451, fmt.Sprintf("4.7.1 Too many messages %s, try again in %s", who, wait(hit.RetryAfter)))
	case limit.RecipientsPerMinute:
		return wire.NewReply(452, fmt.Sprintf("4.5.3 Too many recipients %s, try again in %s", who, wait(hit.RetryAfter)))
	case limit.ErrorsPerMinute:
		return wire.NewReply(421, fmt.Sprintf("4.7.0 Too many errors %s, try again in %s", who, wait(hit.RetryAfter)))
	default:
		return wire.NewReply(421, fmt.Sprintf("4.7.0 Too many connections %s, try again later", who))
	}
}

// wait is a time to wait in whole seconds.
func wait(d time.Duration) string {
	return (d + time.Second - 1).Truncate(time.Second).String()
}
