package fetch

import "fmt"

// ReplaceCopy has replace put another content in the place of a source's copy, an
// earlier version of it, say. That stays there until the server has another
// version than the one that was replaced: else the next fetch would undo it.
func ReplaceCopy(s Source, replace func() error) error {
	s = s.withDefaults()
	known, _ := loadState(s) // empty with an error: nothing is known of the copy
	theirs := known.Instead
	if theirs == "" {
		var err error
		if theirs, err = s.fileSum(); err != nil {
			return fmt.Errorf("list %q: %w", s.Name, err)
		}
	}
	if err := replace(); err != nil {
		return err
	}
	if err := known.adopt(s, theirs); err != nil {
		return fmt.Errorf("list %q: the copy is replaced, but the next fetch will undo it: %w", s.Name, err)
	}
	return nil
}

// adopt makes the state that of the copy as it is now, in the place of the server's
// version, theirs.
func (st state) adopt(s Source, theirs string) error {
	tree, name := s.place()
	info, err := tree.StatFile(name)
	if err != nil {
		return err
	}
	if st.SHA256, err = s.fileSum(); err != nil {
		return err
	}
	key, _, err := s.parse()
	if err != nil {
		return err
	}
	st.URL, st.PublicKey = s.URL, key.String()
	st.Bytes, st.Modified = info.Size(), info.ModTime()
	st.Instead = ""
	if st.SHA256 != theirs {
		st.Instead = theirs
	}
	return st.save(s)
}
