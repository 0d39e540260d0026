package console

import (
	"path/filepath"
	"strings"

	"spamgate/internal/accounts"
	"spamgate/internal/config"
	"spamgate/internal/config/reference"
)

var settingsRoutes = []route{
	{"GET", "/settings", accounts.SeeSettings, (*exchange).settings},
}

// settingsView is what the page of the settings shows.
type settingsView struct {
	File     string
	Changed  bool   // since the gate has read it
	Unread   string // why that is not known
	Warnings []string
	Tables   []settingsTable
}

// settingsTable is a table of the configuration.
type settingsTable struct {
	ID     string // in the page
	Header string
	Title  string // the name of what the table is about, such as a list
	Keys   []settingsKey
}

// settingsKey is a key with its value.
type settingsKey struct {
	Name, Value, Note string
	Set               bool // by the file
	Restart           bool // a change needs a restart
	Text              []reference.Paragraph
}

// settings shows the configuration in use, without what may be a secret.
func (x *exchange) settings() error {
	c := x.console.Config()
	v := settingsView{File: c.File}
	if file, err := filepath.Abs(c.File); err == nil {
		v.File = file
	}
	var err error
	if v.Changed, err = c.Changed(); err != nil {
		v.Unread = err.Error()
	}
	for _, w := range c.Warnings {
		v.Warnings = append(v.Warnings, w.Error())
	}
	if v.Tables, err = settingsTables(c); err != nil {
		return err
	}
	return x.render("settings", view{Title: "Settings", Nav: "/settings", Data: v})
}

// settingsTables returns the tables of a configuration. Of several tables of one name the first
// is explained.
func settingsTables(c *config.Config) (all []settingsTable, err error) {
	tables, err := c.Tables()
	if err != nil {
		return nil, err
	}
	reference.Sort(tables)
	explained := map[string]bool{}
	for _, t := range tables {
		s := settingsTable{ID: strings.Trim(t.Header(), "[]"), Header: t.Header()}
		if t.Name == "" {
			s.ID, s.Header = "top", "Before the first table"
		}
		for _, k := range t.Keys {
			value, err := k.TOML()
			if err != nil {
				return nil, err
			}
			setting := settingsKey{Name: k.Name, Value: value, Note: k.Note, Set: strings.HasPrefix(k.Note, "line "), Restart: config.NeedsRestart(t.Name, k.Name)}
			if !explained[t.Name] {
				setting.Text = reference.Paragraphs(reference.Explain(t.Name, k.Name))
			}
			if k.Name == "name" && t.Array {
				s.Title, _ = k.Value.(string)
				s.ID += "-" + s.Title
			}
			s.Keys = append(s.Keys, setting)
		}
		explained[t.Name] = true
		if len(s.Keys) > 0 {
			all = append(all, s)
		}
	}
	return all, nil
}
