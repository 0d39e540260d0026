package joined

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

func TestGroup(t *testing.T) {
	var g Group
	var n atomic.Int32
	for range 10 {
		g.Go(func() { n.Add(1) })
	}
	g.Wait()
	if n.Load() != 10 {
		t.Errorf("%d have run", n.Load())
	}
}

// A panic reaches who waits, after the other goroutines, and names the function.
func TestPanic(t *testing.T) {
	var g Group
	var n atomic.Int32
	for i := range 10 {
		g.Go(func() {
			if i%2 == 0 {
				fails()
			}
			n.Add(1)
		})
	}
	defer func() {
		p := fmt.Sprint(recover())
		if n.Load() != 5 || !strings.Contains(p, "index out of range") || !strings.Contains(p, "joined.fails") {
			t.Errorf("%d have run, the panic is %s", n.Load(), p)
		}
	}()
	g.Wait()
	t.Error("no panic")
}

func fails() {
	var none []int
	_ = none[len(none)]
}
