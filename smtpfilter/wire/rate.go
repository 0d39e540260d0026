package wire

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// rateGrace is how long a client may take for a message before Config.MinDataRate
// counts: a pause of the network, or a short message, proves nothing.
const rateGrace = time.Minute

// pace enforces a number of bytes a second, on average over a message. Only the time
// spent waiting for the client counts.
type pace struct {
	rate     int64 // bytes a second, 0 for any
	waited   time.Duration
	received int64
}

// left returns how much longer to wait for the client. Each byte prolongs it.
func (p *pace) left() time.Duration {
	earned := time.Duration(float64(p.received) / float64(p.rate) * float64(time.Second))
	return rateGrace + earned - p.waited
}

// fill reads more from the client, waiting at most timeout and no longer than its pace
// allows. The error for a slow client is an os.ErrDeadlineExceeded.
func (p *pace) fill(c *Conn, timeout time.Duration) error {
	if p.rate == 0 {
		return c.fill(timeout)
	}
	left := p.left()
	if left <= 0 {
		return p.tooSlow()
	}
	held, began := len(c.in.bytes()), time.Now()
	err := c.fill(min(timeout, left))
	p.waited += time.Since(began)
	p.received += int64(len(c.in.bytes()) - held)
	if left < timeout && errors.Is(err, os.ErrDeadlineExceeded) {
		return p.tooSlow()
	}
	return err
}

func (p *pace) tooSlow() error {
	return fmt.Errorf("slower than %d bytes a second: %w", p.rate, os.ErrDeadlineExceeded)
}
