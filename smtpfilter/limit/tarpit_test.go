package limit

import (
	"context"
	"testing"
	"time"
)

// forever is longer than any test.
const forever = time.Hour

func TestTarpit(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := NewTarpit(2)
	gone := make(chan struct{})
	held := make(chan bool)
	go func() { held <- p.Wait(ctx, forever, nil) }()
	cancel()
	if <-held {
		t.Error("held to the end of a context that ended early")
	}
	go func() { held <- p.Wait(context.Background(), forever, gone) }()
	close(gone)
	if <-held {
		t.Error("held, and gone")
	}
	p.slots <- struct{}{}
	if !p.Wait(context.Background(), time.Nanosecond, nil) {
		t.Error("no place although all have left")
	}
	if len(p.slots) != 1 {
		t.Error("a place was not given back")
	}
	p.slots <- struct{}{}
	if p.Wait(context.Background(), forever, nil) {
		t.Error("held where all places were taken")
	}
}

func TestNoTarpit(t *testing.T) {
	for _, p := range []*Tarpit{nil, NewTarpit(0), NewTarpit(-1)} {
		if p.Wait(context.Background(), forever, nil) {
			t.Error("held")
		}
	}
	if NewTarpit(1).Wait(context.Background(), 0, nil) {
		t.Error("held for no time")
	}
}
