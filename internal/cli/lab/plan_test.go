package lab

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"spamgate/internal/cli/clitest"
)

// runPlan runs "hashlab plan".
func runPlan(args ...string) (string, error) { return clitest.Output(newPlanCommand(), args...) }

// TestPlanPicture wants a picture, all XML, wherever the plan lies.
func TestPlanPicture(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"--entries=1", "--bits=1"},
		{"--entries=1", "--bits=2^53"},
		{"--entries=2^53", "--bits=1"},
		{"--entries=1e12", "--fpr=1e-290"},
		{"--entries=1", "--bits=2^53", "--hashes=1000"},
		{"--bits=2^28", "--entries=121570", "--hashes=11"},
		{"--entries=5", "--fpr=99.9999999999%"},
	} {
		svg, err := runPlan(append(args, "--svg=-")...)
		if err != nil {
			t.Errorf("%v: %v", args, err)
			continue
		}
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v: %v", args, err)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%v: a coordinate that is no number", args)
		}
	}
}

// TestPlanningPicture wants the picture of docs/planning.md.
func TestPlanningPicture(t *testing.T) {
	picture, err := os.ReadFile("../../../docs/planning.svg")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := runPlan("--svg", "-"); err != nil || got != string(picture) {
		t.Errorf("docs/planning.svg is not what hashlab plan --svg docs/planning.svg writes, %v: run it again", err)
	}
}

func TestPlanUnpredictable(t *testing.T) {
	if _, err := runPlan("--entries=1000", "--bits=2^20", "--family=classic:BP", "--svg=-"); err == nil || !strings.Contains(err.Error(), "cannot be predicted") {
		t.Error(err)
	}
}

var errWriter = errors.New("broken")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errWriter }

func TestPlanOutputFails(t *testing.T) {
	cmd := newPlanCommand()
	cmd.SilenceErrors = true
	cmd.SetOut(brokenWriter{})
	cmd.SetArgs([]string{"--svg=-"})
	if err := cmd.ExecuteContext(context.Background()); !errors.Is(err, errWriter) {
		t.Errorf("%v, want the writer's error", err)
	}
}

func TestShortCount(t *testing.T) {
	for v, want := range map[float64]string{5_000_000: "5M", 2.5e9: "2.5G", 7: "7"} {
		if got := shortCount(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
