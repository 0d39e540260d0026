package plan

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"spamgate/blocklist/bloom"
	"spamgate/internal/text"
)

// printText prints the plan for people, up to 80 columns wide.
func (r *Report) printText(w io.Writer) error {
	var b bytes.Buffer
	if r.asked == (bloom.PlanRequest{}) {
		b.WriteString("The classic filter, since no flag says otherwise: --bits 2^28 --hashes 11.\n" +
			"See spamgate plan --help for others.\n\n")
	}
	r.printAnswer(&b)
	r.printNotes(&b)
	fmt.Fprintf(&b, "\nRates for m/n bits per entry and k hashes (* best k of the row, > this plan):\n\n")
	r.Table.print(&b, r.BitsPerEntry, r.Hashes)
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the plan: %w", err)
	}
	return nil
}

// printAnswer prints the measures.
func (r *Report) printAnswer(b *bytes.Buffer) {
	line := func(symbol, name, value string, given bool) {
		if given {
			value += "  (given)"
		}
		fmt.Fprintf(b, "%-4s%-20s %s\n", symbol, name, value)
	}
	line("n", "entries", text.Number(r.Entries), r.asked.Entries > 0)
	if r.Family != nil {
		line("", "hash family", *r.Family, true)
	}
	rate := "not predicted: it depends on the keys alone"
	if r.FPR != nil {
		rate = RateText(*r.FPR)
		if *r.FPR > 0 {
			rate += ", one lookup of an absent key in " + oneIn(*r.FPR)
		}
	}
	line("p", "false positive rate", rate, false)
	if r.FPRAsked != nil {
		line("", "  asked for", strconv.FormatFloat(*r.FPRAsked, 'g', -1, 64), true)
	}
	line("m", "bits", text.Number(r.Bits), r.asked.Bits > 0)
	line("k", "hashes", fmt.Sprint(r.Hashes), r.asked.Hashes > 0)
	b.WriteByte('\n')
	line("", "memory", memoryText(float64(r.Bits)), false)
	line("m/n", "bits per entry", decimals(r.BitsPerEntry, 3), false)
	line("", "ideal k for this", decimals(r.IdealHashes, 2), false)
	line("", "fill at n", decimals(100*r.Fill, 1)+"% of the bits set", false)
	line("", "stricter bound", RateText(r.FPRBound)+" for p (n + ½ entries, m - 1 bits)", false)
	line("", "m if k were ideal", text.Number(uint64(math.Ceil(r.IdealBits)))+" bits", false)
	line("", "least of any filter", memoryText(r.LeastBits), false)
}

// printNotes says what the formulas do not.
func (r *Report) printNotes(b *bytes.Buffer) {
	if r.Classic != nil {
		fmt.Fprintf(b, "\nThis is the classic filter, whose %d hashes are not independent: PJW and ELF are\n"+
			"one function, and BP sees the last four bytes of a key alone. So p is at best\n"+
			"that of %d hashes, here %s, one in %s.\n",
			r.Hashes, r.Classic.IndependentHashes, RateText(r.Classic.ExpectedFPR), oneIn(r.Classic.ExpectedFPR))
	}
	if r.Classic != nil || r.spec != nil && !r.spec.AnyKeys() {
		fmt.Fprintf(b, "\nNames that resemble each other, such as numbered ones, pass these hashes more\n"+
			"often: up to tens of times. spamgate lists status --detail measures it.\n")
	}
	if r.FPRExact && r.FPR != nil && *r.FPR > rateAt(r.BitsPerEntry, r.Hashes)*1.001 {
		fmt.Fprintf(b, "\nThe table has the textbook's rates, which are too low for so few entries.\n")
	}
	if r.asked.Hashes == 0 && r.IdealHashes > bloom.MaxPlanHashes+1 {
		fmt.Fprintf(b, "\nThe ideal k is beyond %d, the most that is planned. So many bits need few\n"+
			"hashes: choose them with --hashes.\n", bloom.MaxPlanHashes)
	}
	if r.Bits > bloom.MaxBits {
		fmt.Fprintf(b, "\nspamgate's own filters have at most 2^32 bits, 512 MiB.\n")
	}
}

// decimals formats v with a number of digits after the point and commas before it. If that
// would be long or only zeros, it uses an exponent.
func decimals(v float64, digits int) string {
	if v >= 1e9 || v > 0 && v < math.Pow10(-digits) {
		return exponent(v, 2)
	}
	whole, fraction, some := strings.Cut(strconv.FormatFloat(v, 'f', digits, 64), ".")
	n, err := strconv.ParseUint(whole, 10, 64)
	if err != nil {
		return whole
	}
	if some {
		fraction = "." + fraction
	}
	return text.Number(n) + fraction
}

// exponent formats v as 1.23e-5, without leading zeros in the exponent.
func exponent(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'e', digits, 64)
	mantissa, e, _ := strings.Cut(s, "e")
	n, err := strconv.Atoi(e)
	if err != nil {
		return s
	}
	return mantissa + "e" + strconv.Itoa(n)
}

// RateText formats a rate with three digits.
func RateText(p float64) string {
	switch {
	case p == 0:
		return "below 1e-300"
	case p < 0.001:
		return exponent(p, 2)
	}
	return fmt.Sprintf("%.3g", p)
}

// cellText formats a rate with two digits in at most seven characters.
func cellText(p float64) string {
	switch {
	case p < 1e-99:
		return "<1e-99"
	case p < 0.001:
		return exponent(p, 1)
	}
	return fmt.Sprintf("%#.2g", p)
}

// oneIn formats 1/p: one lookup in so many.
func oneIn(p float64) string {
	if p < 1e-9 {
		return exponent(1/p, 1)
	}
	if p > 0.1 {
		return decimals(1/p, 1)
	}
	return text.Number(uint64(math.Round(1 / p)))
}

// ratioText formats bits per entry in at most six characters.
func ratioText(v float64) string {
	switch {
	case v >= 9999.5:
		return exponent(v, 1)
	case v < 0.001:
		return exponent(v, 0)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// memoryText formats a number of bits as a size in MiB, or in GiB if that is easier to read.
func memoryText(bits float64) string {
	bytes := math.Ceil(bits / 8)
	mib := bytes / (1 << 20)
	switch {
	case mib >= 1<<10:
		return decimals(mib/(1<<10), 2) + " GiB (" + decimals(mib, 2) + " MiB)"
	case mib >= 0.1:
		return decimals(mib, 2) + " MiB (" + decimals(bytes, 0) + " bytes)"
	case bytes == 0:
		return "0 bytes"
	case bytes == 1:
		return "1 byte"
	}
	return decimals(bytes, 0) + " bytes (" + RateText(mib) + " MiB)"
}
