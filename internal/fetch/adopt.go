package fetch

import "fmt"

// ReplaceCopy calls replace, which replaces the content of a source's copy, for example
// by an earlier version. Fetches keep that until the server has another version than
// the replaced one.
func ReplaceCopy(s Source, replace func() error) error {
	s = s.withDefaults()
	known, _ := loadState(s) // empty on an error
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

// adopt saves the state of the copy as it is now. Theirs is the sum of the server's
// version, which it replaces.
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
