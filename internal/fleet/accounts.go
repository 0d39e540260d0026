package fleet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"spamgate/internal/listedit"
)

// AccountsList is the name of the List of the kind Accounts. No list in a configuration can
// have it.
const AccountsList = "@accounts"

// AccountsFile is the file of the List of the kind Accounts.
type AccountsFile interface {
	// Replace replaces the file by a content from the fleet, unless that is unusable. It
	// calls before right before that, while nobody else changes the file; old is nil if
	// there is none.
	Replace(content []byte, before func(old *os.File) error) error

	// Compare returns how many accounts of own the fleet's content lacks, or has with other
	// properties, and how many it has in all.
	Compare(own, fleets []byte) (missing, theirs int, err error)

	// Merge returns the fleet's content with those accounts of own whose names it lacks, and
	// how many these are.
	Merge(own, fleets []byte) (merged []byte, added int, err error)
}

// AccountsEdit returns the edit that makes text the accounts.
func AccountsEdit(what string, old *os.File, text []byte) Edit {
	return Edit{List: AccountsList, What: what, SHA256: sha256.Sum256(text), Size: int64(len(text)), Old: old, New: bytes.NewReader(text)}
}

// replaceAccounts makes what write writes, if that is the content of v, the accounts of this gate.
func (l *list) replaceAccounts(v *Version, write func(io.Writer) error, local string) error {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	if sum := sha256.Sum256(text.Bytes()); hex.EncodeToString(sum[:]) != v.SHA256 {
		return errContent
	}
	err := l.m.o.Accounts.Replace(text.Bytes(), func(old *os.File) error {
		if err := l.unmovedAccounts(old, local); err != nil {
			return err
		}
		l.intend(v)
		return nil
	})
	if err != nil {
		return err
	}
	record := l.record(v)
	record.List, record.File = "", "" // as all changes of accounts
	log := &listedit.Log{Dir: l.m.o.StateDir}
	if err := log.Append(record); err != nil {
		l.m.log.Warn("accounts taken from the fleet, but not recorded in the audit log", "error", err)
	}
	return nil
}

// unmovedAccounts is unmoved for a file that is nil if there is none.
func (l *listFile) unmovedAccounts(old *os.File, local string) error {
	switch {
	case old != nil:
		return l.unmoved(old, local)
	case local == "":
		return nil
	}
	return errMoved
}

// readBoth reads the list's file and a content of the fleet, from their begin, of at most most bytes.
func readBoth(own, content *os.File, most int64) (mine, theirs []byte, err error) {
	for file, into := range map[*os.File]*[]byte{own: &mine, content: &theirs} {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, nil, err
		}
		if *into, err = io.ReadAll(&limited{file, most}); err != nil {
			return nil, nil, err
		}
	}
	return mine, theirs, nil
}

// mergeAccounts adds the accounts of the file whose names the fleet's version r lacks to that,
// and makes the result the fleet's version v, and the file. Added is how many they are.
func (l *list) mergeAccounts(ctx context.Context, b *buckets, v *Version, r *remote, content *os.File, local string) (added int, err error) {
	own, err := l.open()
	if err != nil {
		return 0, err
	}
	if own == nil {
		return 0, errMoved
	}
	defer own.Close()
	mine, theirs, err := readBoth(own, content, l.MaxBytes)
	if err != nil {
		return 0, err
	}
	merged, added, err := l.m.o.Accounts.Merge(mine, theirs)
	if err != nil {
		return 0, err
	}
	if added == 0 {
		return 0, l.m.Take(ctx, l.Name)
	}
	if int64(len(merged)) > l.MaxBytes {
		return 0, fmt.Errorf("the accounts of both have %d bytes, more than %d", len(merged), l.MaxBytes)
	}
	sum := sha256.Sum256(merged)
	v.SHA256, v.Size, v.What = hex.EncodeToString(sum[:]), int64(len(merged)), fmt.Sprintf("merged %d accounts of this gate", added)
	var done func(placed bool)
	err = l.m.o.Accounts.Replace(merged, func(old *os.File) (err error) {
		if err := l.unmovedAccounts(old, local); err != nil {
			return err
		}
		done, err = l.proposeEdit(ctx, b, v, nil, nil, bytes.NewReader(merged), r.revision)
		return err
	})
	if done != nil {
		done(err == nil)
	}
	return added, err
}
