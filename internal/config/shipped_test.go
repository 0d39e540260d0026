package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"spamgate/internal/defaultconfig"
)

// root is the clone's directory.
const root = "../.."

// TestShippedIsDefault reads the shipped configuration, which shows defaults, but for its
// lists.
func TestShippedIsDefault(t *testing.T) {
	for name, text := range map[string][]byte{
		"the copy":     []byte(defaultconfig.Config()),
		"as it stands": defaultconfig.Clone(t, root),
	} {
		got, err := parse("config.toml", text, false)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lists := got.Lists
		want := Default()
		want.Listeners = []Listener{{Name: "listen", Endpoint: want.Listen.Endpoint}}
		got.File, got.Lists = "", nil
		if !equalConfigs(*got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, *got, want)
		}
		always, allowed, blocked := DefaultList(), DefaultList(), DefaultList()
		always.Name, always.Path, always.Type, always.Action, always.Override = "always-allow", "lists/always-allow.txt", "allow", "", true
		allowed.Name, allowed.Path, allowed.Type, allowed.Action = "allowed", "lists/allowed.txt", "allow", ""
		blocked.Name, blocked.Path = "blocked", "lists/blocked.txt"
		if want := []List{always, allowed, blocked}; !reflect.DeepEqual(lists, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, lists, want)
		}
	}
}

// TestShippedShort wants the shipped configuration to fit a page.
func TestShippedShort(t *testing.T) {
	if n := strings.Count(string(defaultconfig.Clone(t, root)), "\n"); n > 60 {
		t.Errorf("config.toml has %d lines", n)
	}
}

// exampleLine is a line of a table that the reference shows as an example.
var exampleLine = regexp.MustCompile(`(?m)^#     (\[\[.*\]\]|[a-z_]+ = .*)$`)

// TestReferenceExamples adds the tables that the reference shows to a configuration.
func TestReferenceExamples(t *testing.T) {
	reference, err := os.ReadFile("reference/reference.toml")
	if err != nil {
		t.Fatal(err)
	}
	src := "[listen]\naddr = \"127.0.0.1:2525\"\n[next_hop]\naddr = \"smtp://127.0.0.1:10025\"\n"
	for _, line := range exampleLine.FindAllStringSubmatch(string(reference), -1) {
		if !strings.HasPrefix(line[1], "next_hop = ") { // shown for a listener
			src += line[1] + "\n"
		}
	}
	cfg, err := parse("config.toml", []byte(src), false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range cfg.Listeners {
		got = append(got, strings.Join([]string{l.Name, strings.Join(l.Addr, " "), l.TLS, l.Auth}, ", "))
	}
	want := []string{"listen, 127.0.0.1:2525, none, none", "submissions, :465, implicit, require"}
	if !slices.Equal(got, want) || len(cfg.Lists) != 2 || cfg.Lists[0].Format != "csv" || !cfg.Lists[1].InDNS() {
		t.Errorf("got  %q, %+v\nwant %q and two lists", got, cfg.Lists, want)
	}
}

// TestShippedFiles checks that the files exist that the shipped configuration names.
func TestShippedFiles(t *testing.T) {
	defaultconfig.Clone(t, root)
	cfg, err := Load(filepath.Join(root, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range cfg.Lists {
		if !filepath.IsAbs(l.Path) {
			t.Errorf("list %s: path %s is not absolute", l.Name, l.Path)
		}
		if _, err := os.Stat(l.Path); err != nil {
			t.Errorf("list %s: %v", l.Name, err)
		}
	}
}
