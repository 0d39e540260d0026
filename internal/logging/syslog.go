package logging

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"
)

// syslogSockets are the usual sockets of a syslog daemon.
var syslogSockets = []string{"/dev/log", "/var/run/syslog", "/var/run/log"}

// socketTimeout bounds connecting to a log's socket.
const socketTimeout = 5 * time.Second

// newSyslog opens a syslog daemon at one of the sockets, for datagrams or else a
// stream.
func newSyslog(o Options, sockets ...string) (*Log, error) {
	l, err := newDatagrams(o, syslogEncoder(os.Getpid()), func() (net.Conn, error) {
		var errs []error
		for _, network := range []string{"unixgram", "unix"} {
			for _, path := range sockets {
				conn, err := net.DialTimeout(network, path, socketTimeout)
				if err == nil {
					return conn, nil
				}
				errs = append(errs, err)
			}
		}
		return nil, errors.Join(errs...)
	})
	if err != nil {
		return nil, fmt.Errorf(`connecting to syslog: %w; start a syslog daemon, give a container its /dev/log, or write output = "stderr" in [log]`, err)
	}
	return l, nil
}

// syslogEncoder returns an encoder for the format that local daemons read (RFC 3164,
// section 4.1, without a host name).
func syslogEncoder(pid int) encodeFunc {
	tag := " " + identifier + "[" + strconv.Itoa(pid) + "]: "
	return func(b []byte, r slog.Record, line []byte, _ *relay) ([]byte, int) {
		b = append(b, '<')
		b = strconv.AppendInt(b, int64(facilityMail<<3|severity(r.Level)), 10)
		b = append(b, '>')
		b = r.Time.AppendFormat(b, time.Stamp)
		b = append(b, tag...)
		return append(b, line...), len(b)
	}
}

// facilityMail is syslog's facility of mail systems (RFC 5424, section 6.2.1).
const facilityMail = 2

// severity returns syslog's severity of a level (RFC 5424, section 6.2.1). Levels
// between the named ones count as the one below.
func severity(level slog.Level) int {
	switch {
	case level >= slog.LevelError:
		return 3
	case level >= slog.LevelWarn:
		return 4
	case level >= slog.LevelInfo:
		return 6
	}
	return 7
}
