package decisions

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestBatches records a few rows, which wait for others, and a burst, which is written when it is over.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := open(t, nil)
		rows := int64(0)
		record := func(n int) {
			for range n {
				rows++
				w.Record(refusal(int(rows), time.Now()))
			}
		}
		written := func(after time.Duration) int64 {
			time.Sleep(after)
			synctest.Wait()
			return w.Stats().Rows
		}
		for range 3 {
			record(burstRows - 1)
			if n := written(batchWait - time.Millisecond); n != rows-burstRows+1 {
				t.Errorf("a few rows did not wait for others: %d of %d are written", n, rows)
			}
			if n := written(time.Millisecond); n != rows {
				t.Errorf("after %v %d of %d rows are written", batchWait, n, rows)
			}
			for range 5 {
				record(burstRows)
				if n := written(burstQuiet - time.Millisecond); n == rows {
					t.Error("a burst that goes on was written")
				}
			}
			if n := written(burstQuiet); n != rows {
				t.Errorf("after a burst %d of %d rows are written", n, rows)
			}
			record(batchRows)
			if n := written(0); n != rows {
				t.Errorf("of a batch %d of %d rows are written", n, rows)
			}
		}
	})
}
