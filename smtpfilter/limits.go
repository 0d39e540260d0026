package smtpfilter

import (
	"fmt"
	"log/slog"
	"time"

	"spamgate/smtpfilter/limit"
	"spamgate/smtpfilter/wire"
)

// limited returns the reply to a client that has reached a limit, and logs it. For too many
// connections or errors it is 421, which ends the connection. Otherwise it refuses for now
// (RFC 3463: X.7.1, policy; X.5.3, too many recipients).
func (l *Listener) limited(c *wire.Conn, r limit.Result) wire.Reply {
	reply := limitReply(r)
	l.server.cfg.Meter.Limited(l.name, r)
	l.logConn(c, slog.LevelInfo, "limited",
		slog.String("limit", r.Limit),
		slog.String("of", r.Scope),
		slog.Int("value", r.Value),
		slog.String("key", r.Key()),
		slog.String("reply", reply.String()),
		slog.String("hint", remedy(r)))
	return reply
}

// remedy returns what to change if the client should have been served.
func remedy(r limit.Result) string {
	if r.Scope == limit.Login {
		return fmt.Sprintf("the next hop's log has the name of the login; if it may send more, set %s = %d (0: no limit)", r.Key(), 2*r.Value)
	}
	if r.Scope == limit.All {
		return fmt.Sprintf("if the machine can serve more, set %s = %d for the listener; each connection can take two file descriptors", r.Key(), 2*r.Value)
	}
	return fmt.Sprintf("if this client is welcome, exempt its address from the listener's limits (limits_exempt), or set %s = %d (0: no limit)", r.Key(), 2*r.Value)
}

var whose = map[string]string{limit.Client: "from your address", limit.Network: "from your network", limit.Login: "with your login", limit.All: "at this server"}

// limitReply returns the reply to a client that has reached a limit.
func limitReply(r limit.Result) wire.Reply {
	who := whose[r.Scope]
	retry := (r.RetryAfter + time.Second - 1).Truncate(time.Second)
	switch r.Limit {
	case limit.MessagesPerMinute:
		return wire.NewReply(451, fmt.Sprintf("4.7.1 Too many messages %s, try again in %s", who, retry))
	case limit.RecipientsPerMinute:
		return wire.NewReply(452, fmt.Sprintf("4.5.3 Too many recipients %s, try again in %s", who, retry))
	case limit.ErrorsPerMinute:
		return wire.NewReply(421, fmt.Sprintf("4.7.0 Too many errors %s, try again in %s", who, retry))
	default:
		return wire.NewReply(421, fmt.Sprintf("4.7.0 Too many connections %s, try again later", who))
	}
}
