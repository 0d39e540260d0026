package lab

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"spamgate/blocklist/bloom"
	"spamgate/internal/chart"
	"spamgate/internal/cli/plan"
	"spamgate/internal/text"
)

// Measures of the picture.
const (
	planWidth  = 560 // points
	planHeight = 380
	planPoints = 400 // of each curve
)

// newPlanCommand returns the command "plan" of spamgate with a picture.
func newPlanCommand() *cobra.Command {
	cmd := plan.NewCommand(drawPlan)
	cmd.Short = "Plan a Bloom filter as spamgate plan does, and draw its rates"
	cmd.Long += `

--svg draws the rate against n into FILE, which is created or replaced only when
the picture is complete. With - the picture goes to standard output in place of
the text.`
	cmd.Example = `  hashlab plan --entries 1e6 --fpr 1/1000 --svg rates.svg
  hashlab plan --bits 2^28 --hashes 11 --svg - > classic.svg`
	return cmd
}

// drawPlan draws the rate against the entries, from none to twice those of the plan,
// for the planned bits and a few numbers of hashes.
func drawPlan(w io.Writer, r *plan.Report) error {
	if r.FPR == nil {
		return errors.New("--svg: the rate of this family cannot be predicted, so there is no curve to draw")
	}
	p := chart.New(fmt.Sprintf("False positives of a Bloom filter of %s bits", text.Number(r.Bits)),
		"entries n", "false positive rate")
	low := lowestPower(*r.FPR)
	grid := plotter.NewGrid()
	grid.Vertical, grid.Horizontal = chart.Guide(), chart.Guide()
	p.Add(grid)
	end := 2 * float64(r.Entries)
	for i, k := range pictureHashes(r) {
		points := curve(r.Bits, k, end, math.Pow10(low))
		if len(points) < 2 {
			continue // too low for the picture
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("drawing the curve for k = %d: %w", k, err)
		}
		line.LineStyle = chart.Line(i)
		p.Add(line)
		name := fmt.Sprint("k = ", k)
		if r.Classic != nil && k == r.Classic.IndependentHashes {
			name += fmt.Sprintf(" (the classic %d at best)", r.Hashes)
		}
		p.Legend.Add(name, line)
	}
	if *r.FPR > 0 {
		point, err := plotter.NewScatter(plotter.XYs{{X: float64(r.Entries), Y: *r.FPR}})
		if err != nil {
			return fmt.Errorf("drawing the plan: %w", err)
		}
		point.GlyphStyle = draw.GlyphStyle{Color: chart.Colour(0), Radius: vg.Points(4), Shape: draw.CircleGlyph{}}
		p.Add(point)
		p.Legend.Add(fmt.Sprintf("plan: %s at n = %s", plan.RateText(*r.FPR), text.Number(r.Entries)), point)
	}
	// Now that all is added, which widens the axes.
	p.X.Min, p.X.Max = 0, end
	chart.LogScale(&p.Y, low, 0)
	p.X.Tick.Marker = countTicks{}
	p.Legend.XOffs, p.Legend.YOffs = -6, 4 // inside the corner
	return chart.WriteSVG(w, p, planWidth, planHeight)
}

// lowestPower returns the power of ten at which the picture ends. It is below the plan's rate,
// to show the effect of fewer entries and to leave room for the legend.
func lowestPower(rate float64) int {
	const least = -300
	if rate == 0 {
		return least
	}
	return max(int(math.Floor(math.Log10(rate)*1.3))-3, least)
}

// pictureHashes returns the k of the curves: the planned one, half and twice of it, one, and
// the effective number of the classic filter's hashes.
func pictureHashes(r *plan.Report) []int {
	others := []int{(r.Hashes + 1) / 2, min(2*r.Hashes, bloom.MaxPlanHashes), 1}
	if r.Classic != nil {
		others = append(others, r.Classic.IndependentHashes)
	}
	hashes := []int{r.Hashes}
	for _, k := range others {
		if !slices.Contains(hashes, k) {
			hashes = append(hashes, k)
		}
	}
	return hashes
}

// curve returns the rate for k hashes up to end entries. The points have equal distances, but
// are denser before the first, where the rate falls most. Of the points below low, where the
// picture ends, it keeps the last one, so that the line reaches the edge.
func curve(bits uint64, k int, end, low float64) plotter.XYs {
	step := end / planPoints
	var points plotter.XYs
	add := func(n float64) {
		xy := plotter.XY{X: n, Y: bloom.FPR(bits, k, n)}
		switch {
		case xy.Y == 0: // has no logarithm
		case xy.Y < low:
			points = plotter.XYs{xy}
		default:
			points = append(points, xy)
		}
	}
	for i := planPoints / 4; i > 0; i-- {
		add(step * math.Pow(0.8, float64(i)))
	}
	for i := 1; i <= planPoints; i++ {
		add(step * float64(i))
	}
	return points
}

// countTicks labels an axis with counts as --entries reads them: 5M for
// 5,000,000.
type countTicks struct{}

// Ticks returns the ticks that gonum/plot chooses, with other labels.
func (countTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = shortCount(ticks[i].Value)
		}
	}
	return ticks
}

// shortCount formats v with K, M, G or T.
func shortCount(v float64) string {
	unit := ""
	for _, u := range []string{"K", "M", "G", "T"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	return strconv.FormatFloat(v, 'g', 6, 64) + unit
}
