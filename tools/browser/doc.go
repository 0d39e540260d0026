// Package browser tests the console in a real browser: Debian's chromium, driven by chromedp,
// with the real program, real SMTP sessions and the lists and history that come of them.
//
//	npm ci --prefix tools/browser
//	go -C tools/browser test ./...
//	SPAMGATE_SCREENSHOTS=/tmp/pictures go -C tools/browser test -run Pages ./...
//	SPAMGATE_PICTURES=$PWD/docs/pictures go -C tools/browser test -run Pictures ./...
//
// SPAMGATE_SCREENSHOTS names a folder for a picture of each page in both themes and three
// widths, SPAMGATE_PICTURES one for the pictures of the documentation. With SPAMGATE_E2E_FULL=1 every string of the corpus is tried in every place.
//
// It is a module of its own, so that the program does not depend on chromedp.
package browser
