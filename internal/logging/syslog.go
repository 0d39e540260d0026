package logging

import (
	"fmt"
	"io"
	"log/slog"
	"log/syslog"
)

// newSyslog connects to a syslog server; an empty network is the machine's
// own. The package log/syslog connects again by itself where the connection is
// lost.
func newSyslog(network, address string, o Options) (*slog.Logger, io.Closer, error) {
	w, err := syslog.Dial(network, address, syslog.LOG_MAIL|syslog.LOG_INFO, identifier)
	if err != nil {
		return nil, nil, fmt.Errorf(`connecting to syslog: %w; start a syslog daemon, give a container its /dev/log, or write output = "stderr" in [log]`, err)
	}
	send := func(r slog.Record, line string, _ *relay) error { return writeSyslog(w, r.Level, line) }
	return slog.New(newRelay(o, send)), w, nil
}

// writeSyslog sends a line with the severity of its level (RFC 5424, section
// 6.2.1). Levels between the named ones count as the one below.
func writeSyslog(w *syslog.Writer, level slog.Level, line string) error {
	switch {
	case level >= slog.LevelError:
		return w.Err(line)
	case level >= slog.LevelWarn:
		return w.Warning(line)
	case level >= slog.LevelInfo:
		return w.Info(line)
	}
	return w.Debug(line)
}
