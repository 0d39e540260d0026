package report

import (
	"spamgate/internal/admin"
	"spamgate/internal/recipients"
)

// Recipients returns the state of the files with recipients for the admin socket.
func Recipients(files []*recipients.File) []admin.RecipientFile {
	var all []admin.RecipientFile
	for _, f := range files {
		s := f.Status()
		r := admin.RecipientFile{
			Name: s.Name(), Path: s.Path, Entries: s.Entries, Invalid: s.Invalid,
			Loaded: TimeOrNil(s.Loaded), Modified: TimeOrNil(s.Modified), Acceptable: s.Acceptable,
		}
		if s.Invalid > 0 {
			r.Problem = &admin.Problem{File: s.Path, Line: s.First.Line, Text: s.First.Text, What: s.First.What}
		}
		if s.Err != nil {
			r.Error, r.ErrorSince = s.Err.Error(), TimeOrNil(s.Since)
		}
		all = append(all, r)
	}
	return all
}
