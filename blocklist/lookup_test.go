package blocklist

import (
	"testing"

	"spamgate/blocklist/verdict"
)

func TestLookupAllocations(t *testing.T) {
	c, _ := disposableConfig(t)
	set := build(t, c)
	for _, address := range []string{"someone@mail.example.com", "someone+tag@a.b.example.com", "<>", "u@[192.0.2.1]"} {
		a := parse(t, address)
		for _, stage := range []verdict.Stage{verdict.Envelope, verdict.Header} {
			if n := testing.AllocsPerRun(100, func() { set.Lookup(stage, a) }); n != 0 {
				t.Errorf("%s: %v allocations", address, n)
			}
		}
	}
}

// A stage that does not exist is an error, and never an answer.
func TestLookupStage(t *testing.T) {
	set := build(t, fast(blockList("l", write(t, inDir(t, "l"), "listed.example\n"))))
	listed := parse(t, "a@listed.example")
	for _, stage := range []verdict.Stage{0, 4, verdict.Envelope | 4} {
		if _, err := set.Lookup(stage, listed); err == nil {
			t.Errorf("stage %d: Lookup answers", stage)
		}
		if _, err := set.Only(nil).Find(stage, listed, FindOptions{Blocks: true}); err == nil {
			t.Errorf("stage %d: Find answers", stage)
		}
		if _, _, err := set.Only(nil).Trace(stage, listed, FindOptions{}); err == nil {
			t.Errorf("stage %d: Trace answers", stage)
		}
	}
}
