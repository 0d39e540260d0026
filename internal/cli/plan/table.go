package plan

import (
	"bytes"
	"fmt"
	"math"

	"spamgate/blocklist/bloom"
)

// rateTable is the rates of filters around a planned one.
type rateTable struct {
	Hashes []int     `json:"hashes"` // the columns
	Rows   []rateRow `json:"rows"`
}

// rateRow is the rates with so many bits per entry.
type rateRow struct {
	BitsPerEntry float64   `json:"bits_per_entry"`
	FPR          []float64 `json:"fpr"` // by each of the table's Hashes
	BestHashes   int       `json:"best_hashes"`
	BestFPR      float64   `json:"best_fpr"`
}

// Measures of the table, as large as 80 columns allow.
const (
	tableColumns = 7
	tableAround  = 5  // rows above and below the planned one
	tableDense   = 40 // bits per entry up to which a row for each whole number makes sense
)

// newRateTable makes the table around p, which has a row and a column of its
// own.
func newRateTable(p bloom.Plan) rateTable {
	var t rateTable
	first := min(max(p.Hashes-tableColumns/2, 1), bloom.MaxPlanHashes-tableColumns+1)
	for k := first; k < first+tableColumns; k++ {
		t.Hashes = append(t.Hashes, k)
	}
	for _, perEntry := range tableRows(p.BitsPerEntry()) {
		row := rateRow{BitsPerEntry: perEntry, BestHashes: bloom.BestHashes(perEntry, 1)}
		row.BestFPR = rateAt(perEntry, row.BestHashes)
		for _, k := range t.Hashes {
			row.FPR = append(row.FPR, rateAt(perEntry, k))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// rateAt returns the rate for a number of bits per entry: the formula depends on m/n only.
func rateAt(perEntry float64, k int) float64 { return bloom.FPR(1, k, 1/perEntry) }

// tableRows returns the bits per entry of the rows around a planned number: whole numbers and
// the planned one, which replaces a row that would look the same. If one bit more makes no
// difference, each row has twice the bits of the row before.
func tableRows(planned float64) []float64 {
	var rows []float64
	if planned > tableDense {
		for position := planned * 2; position > 1 && len(rows) < 2*tableAround+1; position /= 2 {
			rows = append([]float64{position}, rows...)
		}
		return rows
	}
	middle := math.Round(planned)
	some := false
	for position := max(middle-tableAround, 1); position <= max(middle, 1)+tableAround; position++ {
		if !some && planned < position+0.005 {
			rows, some = append(rows, planned), true
			if math.Abs(planned-position) < 0.005 {
				continue
			}
		}
		rows = append(rows, position)
	}
	return rows
}

// print writes the table, up to 80 columns wide, with marks at the best cell of
// each row and at the planned one.
func (t rateTable) print(b *bytes.Buffer, planned float64, hashes int) {
	fmt.Fprintf(b, "   m/n")
	for _, k := range t.Hashes {
		fmt.Fprintf(b, "%8s ", fmt.Sprint("k=", k))
	}
	fmt.Fprintf(b, "  best k\n")
	for _, row := range t.Rows {
		fmt.Fprintf(b, "%6s", ratioText(row.BitsPerEntry))
		for i, k := range t.Hashes {
			before, after := "", " "
			if row.BitsPerEntry == planned && k == hashes {
				before = ">"
			}
			if k == row.BestHashes {
				after = "*"
			}
			fmt.Fprintf(b, "%8s%s", before+cellText(row.FPR[i]), after)
		}
		fmt.Fprintf(b, "%s\n", bestText(row))
	}
}

// bestText formats the best k of a row and its rate in 11 characters. With k = 1000 the rate
// is below 1e-99 and leaves room for the fourth digit.
func bestText(row rateRow) string {
	k := fmt.Sprintf("%3d ", row.BestHashes)
	return fmt.Sprintf("%s%*s", k, 11-len(k), cellText(row.BestFPR))
}
