// Package term writes for a terminal: numbers and durations for people, tables and
// wrapped text, progress bars, and untrusted text made safe.
package term

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"spamgate/internal/text"
)

// Age formats a duration in a suitable unit: "12 s", "3 d".
func Age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, int(d/time.Second)))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d/time.Hour))
	default:
		return fmt.Sprintf("%d d", int(d/(24*time.Hour)))
	}
}

// SmallText formats a rate or a share in a few characters. Values that are too small to
// matter are 0.
func SmallText(v float64) string {
	switch {
	case v < leastFPR:
		return "0"
	case v < 0.001:
		return strings.Replace(fmt.Sprintf("%.0e", v), "e-0", "e-", 1)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// SmallFPR formats a false positive rate in a few characters. It is never shown as 0; "-"
// means that a list has no rate of its own.
func SmallFPR(v float64) string {
	switch {
	case math.IsNaN(v):
		return "unknown"
	case v == 0:
		return "-"
	case v < leastFPR:
		return "<" + strings.TrimSpace(strings.TrimPrefix(FPR(v), "<"))
	}
	return SmallText(v)
}

// FPR formats a false positive rate, which is never shown as 0. One that is not a number
// cannot be predicted.
func FPR(fpr float64) string {
	if math.IsNaN(fpr) {
		return "not predicted"
	}
	if fpr < leastFPR {
		return fmt.Sprintf("< %.0g", leastFPR)
	}
	return fmt.Sprintf("%.2g", fpr)
}

// leastFPR is the smallest rate that is shown as a number.
const leastFPR = 1e-18

// ShortPath returns a path below the working directory relative to it.
func ShortPath(s string) string {
	dir, err := os.Getwd()
	if err != nil || dir == "/" {
		return s
	}
	scheme, path, ok := strings.Cut(s, ":")
	if !ok {
		scheme, path = "", s
	} else {
		scheme += ":"
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsAbs(path) && filepath.IsLocal(rel) {
		return scheme + rel
	}
	return s
}

// ByteSize formats a number of bytes.
func ByteSize(n int64) string {
	switch {
	case n < 1<<10:
		return text.Count(int(n), "byte", "bytes")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
}

func InBrackets(s string) string {
	if s == "" {
		return ""
	}
	return "  (" + s + ")"
}

// OneField replaces tabs and newlines, so that a text is one field of a line.
var OneField = strings.NewReplacer("\t", " ", "\r", " ", "\n", " ")
