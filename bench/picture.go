package main

import (
	"bytes"
	"fmt"
	"os"
)

// Sizes in the picture, in pixels.
const (
	pictureWidth = 760
	barLeft      = 140
	barRight     = 560
	barHeight    = 18
	barGap       = 6
	rowTitle     = 34
)

// barColours are the colours of the targets, which differ in grey, too.
var barColours = map[string]string{
	direct: "#9aa0a6", haproxy: "#5b8def", postfix: "#e0a030", plain: "#b9a6d3",
	gateNone: "#1a7f4b", gateXforward: "#3c9a68", gateAuto: "#69b58c", gateBefore: "#888888", gateData: "#0d5c34",
}

// writePicture draws the times of each workload as bars into an SVG file.
func (r *report) writePicture(path string) error {
	var b bytes.Buffer
	y := 10
	for _, row := range r.Rows {
		y += rowTitle
		times, longest := row.times(), 0.0
		for _, name := range measured(row.Runs) {
			longest = max(longest, times.median(name))
		}
		fmt.Fprintf(&b, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", y-10, row)
		for _, name := range measured(row.Runs) {
			median := times.median(name)
			width := median / longest * (barRight - barLeft)
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", barLeft-8, y+barHeight-5, name)
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", barLeft, y, width, barHeight, barColours[name])
			label := fmt.Sprintf("%.2f s", median)
			if name != haproxy {
				label += fmt.Sprintf(" (%.2f × HAProxy)", times.ratio(name, haproxy).median)
			}
			fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`+"\n", barLeft+width+6, y+barHeight-5, label)
			y += barHeight + barGap
		}
	}
	var svg bytes.Buffer
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif" font-size="13">`+"\n",
		pictureWidth, y+10)
	fmt.Fprintf(&svg, `<title>Time for the same mail through each, less is better</title>`+"\n")
	fmt.Fprintf(&svg, `<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n")
	svg.Write(b.Bytes())
	fmt.Fprintln(&svg, `</svg>`)
	return os.WriteFile(path, svg.Bytes(), 0o644)
}
