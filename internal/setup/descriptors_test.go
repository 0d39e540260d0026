package setup

import (
	"fmt"
	"strings"
	"testing"

	"spamgate/internal/config"
)

// TestAutoConnections: what max_connections = "auto" comes to, and what is warned
// of.
func TestAutoConnections(t *testing.T) {
	const auto = config.AutoConnections
	for _, test := range []struct {
		descriptors int
		listeners   []config.Connections
		nextHops    int
		want        int
		warning     string
	}{
		{65536, []config.Connections{auto}, 1, 1000, ""},
		{65536, []config.Connections{auto, auto, auto}, 3, 1000, ""},
		{2160, []config.Connections{auto}, 1, 1000, ""},
		{2159, []config.Connections{auto}, 1, 999, `"auto" is only 999`},
		{1024, []config.Connections{auto}, 1, 432, "2160 is enough for 1000"},
		{1024, []config.Connections{auto, auto}, 1, 216, "4160 is enough for 1000"},
		{1024, []config.Connections{auto, 400}, 1, 32, `"auto" is only 32`},
		{1024, []config.Connections{432}, 1, 10, ""},
		{1024, []config.Connections{433}, 1, 10, "433 connections can take 1026, and it may open 1024"},
		{1024, []config.Connections{0}, 1, 864, ""}, // none was asked for
		{1024, []config.Connections{0, auto}, 1, 432, ""},
		{64, []config.Connections{auto}, 1, 10, "10 connections can take 180, and it may open 64"},
	} {
		t.Run(fmt.Sprint(test.descriptors, test.listeners), func(t *testing.T) {
			c := &config.Config{NextHop: config.NextHop{Addr: make(config.Addresses, test.nextHops)}}
			for _, n := range test.listeners {
				c.Listeners = append(c.Listeners, config.Listener{Endpoint: config.Endpoint{MaxConnections: n}})
			}
			if got := AutoConnections(c, test.descriptors); got != test.want {
				t.Errorf("auto is %d, want %d", got, test.want)
			}
			warning := DescriptorWarning(c, test.descriptors)
			if (warning == "") != (test.warning == "") || !strings.Contains(warning, test.warning) {
				t.Errorf("warns %q, want %q", warning, test.warning)
			}
			if warning != "" && (!strings.Contains(warning, "LimitNOFILE=") || !strings.Contains(warning, "max_connections")) {
				t.Errorf("%q does not say what to do", warning)
			}
		})
	}
	// A connection to a door takes one descriptor, and there may be no listener.
	door := func(n config.Connections) config.Door { return config.Door{MaxConnections: n} }
	for _, test := range []struct {
		descriptors, listeners int
		doors                  []config.Door
		want                   int
		warning                string
	}{
		{1128, 0, []config.Door{door(auto)}, 1000, ""},
		{1127, 0, []config.Door{door(auto)}, 999, "1128 is enough for 1000"},
		{1160, 1, []config.Door{door(auto)}, 333, "3160 is enough for 1000"},
		{1160, 1, []config.Door{door(800)}, 100, `"auto" is only 100 for each listener and door`},
		{1024, 0, []config.Door{door(900)}, 10, "900 connections can take 1028, and it may open 1024"},
		{1024, 0, []config.Door{door(0)}, 896, ""},
	} {
		c := &config.Config{Doors: test.doors}
		for range test.listeners {
			c.NextHop.Addr = config.Addresses{"smtp://127.0.0.1:25"}
			c.Listeners = append(c.Listeners, config.Listener{Endpoint: config.Endpoint{MaxConnections: auto}})
		}
		if got := AutoConnections(c, test.descriptors); got != test.want {
			t.Errorf("%+v: auto is %d", test, got)
		}
		if warning := DescriptorWarning(c, test.descriptors); (warning == "") != (test.warning == "") || !strings.Contains(warning, test.warning) {
			t.Errorf("%+v: warns %q", test, warning)
		}
	}
	// The console takes some from mail.
	c := &config.Config{Console: config.Console{Addr: "127.0.0.1:8025"}, Doors: []config.Door{door(auto)}}
	if got := AutoConnections(c, 1128+ConsoleConnections-1); got != 999 {
		t.Errorf("beside a console auto is %d", got)
	}
	if n := DescriptorLimit(); n < 64 {
		t.Errorf("the descriptor limit is %d", n)
	}
}
