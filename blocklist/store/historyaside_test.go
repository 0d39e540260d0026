package store

import (
	"context"
	"testing"
	"time"
)

// While lists are read, here by the test, a version is not packed any further.
func TestHistoryStepsAside(t *testing.T) {
	path := write(t, inDir(t, "spam.txt"), "one.example\n")
	c := stateful(t, blockList("spam", path))
	c.History = 1
	s := openStill(t, c)
	s.running.Wait()
	write(t, path, "two.example\n")
	rescan(t, s)
	s.running.Wait()
	must(t, s.state.tree.RemoveAll(ListName("spam")+"/"+historyName))
	must(t, s.state.tree.MakeDirs(ListName("spam")+"/"+historyName))

	version := versionAt(s, 0)
	steps, packed := make(chan struct{}), make(chan error)
	s.mu.Lock()
	go func() {
		job := archiveJob{version, time.Now(), 1}
		packed <- archiveVersion(context.Background(), s.state.tree, ListName("spam")+"/"+historyName, job, func() {
			select {
			case steps <- struct{}{}:
			case <-s.ctx.Done():
			}
			s.stepAside()
		})
	}()
	<-steps
	if got := kept(t, c.StateDir); len(got) != 0 {
		t.Errorf("packed while lists are read: %q", got)
	}
	s.mu.Unlock()
	for {
		select {
		case <-steps:
			continue
		case err := <-packed:
			must(t, err)
		}
		break
	}
	if got := kept(t, c.StateDir); len(got) != 1 || got[0] != "two.example\n" {
		t.Errorf("packed: %q", got)
	}
}
