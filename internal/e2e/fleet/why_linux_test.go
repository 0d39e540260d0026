package fleet

import (
	"os/exec"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestWhy asks one gate what happened to a message on another, also when that is dead.
func TestWhy(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	sites := startSites(t, n, "mx1", "mx2")
	one, two := sites[0], sites[1]
	id := two.refuse(t, "b@spam.example", "ann@example.net")
	said := one.Command(t, 0, "why", id)
	for _, want := range []string{"gate mx2 from <b@spam.example>", "The gate refused the sender <b@spam.example>: list shared has spam.example", "Asked the fleet: mx1, mx2 answered.", "b@spam.example: reject"} {
		if !strings.Contains(strings.Join(strings.Fields(said), " "), want) {
			t.Errorf("there is no %q in\n%s", want, said)
		}
	}
	said = one.Command(t, 0, "why", "b@spam.example")
	if !strings.Contains(said, "gate       mx2\n") {
		t.Error(said)
	}
	if said := two.Command(t, 0, "why", id); strings.Contains(said, "Asked the fleet") {
		t.Errorf("the fleet is asked for an id that this gate knows:\n%s", said)
	}
	if said := one.Command(t, 0, "why", id, "--json"); !strings.Contains(said, `"gate": "mx2"`) || !strings.Contains(said, `"gates": [`) {
		t.Error(said)
	}
	fails := func(args ...string) (string, int) {
		cmd := exec.Command(harness.Binary(t), append([]string{"why"}, args...)...)
		cmd.Dir = one.Dir
		out, errs, code := harness.Run(t, cmd)
		return out + errs, code
	}
	if said, code := fails(id, "--here"); code == 0 || strings.Contains(said, "mx2") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	two.Kill()
	<-two.Exited
	two.Ended = true
	if said, code := fails(id); code != 2 || !strings.Contains(said, "NO ANSWER from mx2") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}
