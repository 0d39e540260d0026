package wire

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestPace(t *testing.T) {
	for _, tt := range []struct {
		name     string
		received int64
		waited   time.Duration
		want     time.Duration
	}{
		{"at the beginning", 0, 0, time.Minute},
		{"half of the grace", 0, 30 * time.Second, 30 * time.Second},
		{"a second earned", 500, time.Minute, time.Second},
		{"nothing left", 500, 61 * time.Second, 0},
		{"too late", 500, 62 * time.Second, -time.Second},
		{"a large message", 5 << 30, 0, time.Minute + (5<<30)/500*time.Second},
	} {
		p := pace{rate: 500, received: tt.received, waited: tt.waited}
		if got := p.left(); got.Round(time.Second) != tt.want {
			t.Errorf("%s: %v left, want %v", tt.name, got, tt.want)
		}
	}
}

// TestMinDataRate ends the message of a client that sends each byte in time, but
// too few of them, in DATA and in chunks. Who is fast enough may pause for longer
// than the grace, and the gate may take its time. The clock is a fake one.
func TestMinDataRate(t *testing.T) {
	long := strings.Repeat("a", 2000)
	for _, tt := range []struct {
		name   string
		pieces [][]byte
		each   time.Duration // what the client takes for a piece
		gate   time.Duration // what the gate takes for one
		want   time.Duration // when a message ends that is too slow, at most a tenth later; 0 for one that is taken
	}{
		{"DATA, a byte a second", bytewise(long), time.Second, 0, 66 * time.Second},
		{"DATA, 9 bytes a second", split(long, 9), time.Second, 0, 260 * time.Second},
		{"BDAT, a byte a second", bytewise("BDAT 1000 LAST\r\n" + long), time.Second, 0, 66 * time.Second},
		{"BDAT, slow between chunks", split("BDAT 0\r\n"+strings.Repeat("NOOP\r\n", 40), 6), 10 * time.Second, 0, 60 * time.Second},
		{"DATA, 11 bytes a second", split(long+"\r\n.\r\n", 11), time.Second, 0, 0},
		{"DATA, a slow gate", split(long+"\r\n.\r\n", 11), time.Second, time.Minute, 0},
		{"DATA, a pause", [][]byte{[]byte(long + "\r\n"), []byte("x\r\n"), []byte(".\r\n")}, 100 * time.Second, 0, 0},
		{"BDAT, a pause", [][]byte{[]byte("BDAT 2000\r\n" + long), []byte("BDAT 0 LAST\r\n")}, 150 * time.Second, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := net.Pipe()
				cfg := Config{Rules: Rules{MinDataRate: 10}}.withDefaults()
				c := newConn(server, &cfg, nil)
				var wg sync.WaitGroup
				wg.Go(func() { io.Copy(io.Discard, client) })
				wg.Go(func() {
					for _, piece := range tt.pieces {
						if _, err := client.Write(piece); err != nil {
							return
						}
						time.Sleep(tt.each)
					}
				})
				if strings.HasPrefix(tt.name, "BDAT") {
					if err := c.next(); err != nil {
						t.Fatal(err)
					}
				}
				c.finishReply(NewReply(354, "Go ahead"))
				began := time.Now()
				var err error
				for err == nil {
					time.Sleep(tt.gate)
					_, err = c.body.Next()
				}
				switch took := time.Since(began); {
				case tt.want == 0 && err != io.EOF:
					t.Errorf("after %v: %v", took, err)
				case tt.want > 0 && (!TimedOut(err) || !strings.Contains(err.Error(), "slower than 10 bytes a second")):
					t.Errorf("after %v: %v", took, err)
				case tt.want > 0 && (took < tt.want || took > tt.want*11/10):
					t.Errorf("ended after %v, want %v", took, tt.want)
				case tt.want > 0 && (c.body.Discard() == nil || !c.last):
					t.Error("the connection goes on")
				}
				server.Close()
				wg.Wait()
			})
		})
	}
}
