package header

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/emersion/go-message/mail"
)

// TestNamesAreNotDecoded wants no time to be spent on the charsets of display names.
func TestNamesAreNotDecoded(t *testing.T) {
	for _, charset := range []string{"gb18030", "utf-16be", "shift_jis", "x-unknown"} {
		list, err := mail.ParseAddressList("=?" + charset + "?q?=C4=E3?= <a@b.example>")
		if err != nil || len(list) != 1 || list[0].Address != "a@b.example" {
			t.Fatalf("%s: %v, %v", charset, list, err)
		}
		if got := list[0].Name; got != "\xc4\xe3" {
			t.Errorf("%s: the name was decoded to %q", charset, got)
		}
	}
}

// TestParsingIsCharged wants values that go-message parses to count towards the cost of
// the section.
func TestParsingIsCharged(t *testing.T) {
	b := budget{left: 1000}
	value := strings.Repeat("=?utf-8?q?abc?= ", 240) + "<a@b.example>"
	if found := b.parse(value); len(found) != 1 {
		t.Fatal(found)
	}
	if spent := 1000 - b.left; spent < len(value)/parsedPerWord {
		t.Errorf("%d units for %d bytes", spent, len(value))
	}
}

// Words in charsets that nobody knows do not hide one in a charset that is known.
func TestUnknownCharsetsHideNothing(t *testing.T) {
	junk := ""
	for i := range 100 {
		junk += fmt.Sprintf("=?x%d?q?=20?= ", i)
	}
	wide := make([]byte, 0, 64)
	for _, c := range []byte("spam@listed.example") {
		wide = append(wide, 0, c)
	}
	for _, before := range []string{"", junk, strings.Repeat("=?koi8-r?q?=20?= =?l1?q?=20?= ", 50)} {
		section := "From: " + before + "=?utf-16be?B?" + base64.StdEncoding.EncodeToString(wide) + "?="
		got := SendersUpTo([]byte(section), asked, 1000)
		if !slices.Contains(got.Senders, Sender{Field: "From", Address: "spam@listed.example"}) || got.TooMany {
			t.Errorf("%.60q…: %q, too many: %t", before, got.Senders, got.TooMany)
		}
	}
}
