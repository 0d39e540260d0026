package session

import (
	"fmt"
	"strings"

	"spamgate/blocklist/store"
	"spamgate/internal/config"
	"spamgate/internal/listfiles"
	"spamgate/internal/text"
)

// KeptVersions returns the stored versions of a list, the newest first.
func KeptVersions(c *config.Config, list string) ([]store.VersionInfo, error) {
	versions, err := store.Versions(c.State.Dir, list)
	return versions, listfiles.WithAuthority(err, listfiles.WhoServes)
}

// NoVersionKept returns the error that explains why no version is stored.
func NoVersionKept(c *config.Config) error {
	if c.State.History == 0 {
		return fmt.Errorf("no versions are kept, since [state] history is 0 in %s", c.File)
	}
	return fmt.Errorf("no version is kept in %s yet: a running gate keeps those that go live", c.State.Dir)
}

// FindVersion returns the version whose ID begins with start.
func FindVersion(list string, versions []store.VersionInfo, start string) (store.VersionInfo, error) {
	var found []store.VersionInfo
	for _, v := range versions {
		if strings.HasPrefix(v.ID, start) {
			found = append(found, v)
		}
	}
	if len(found) != 1 {
		return store.VersionInfo{}, fmt.Errorf("list %s: %s with %q; see spamgate lists rollback %s --list-versions",
			list, text.Count(len(found), "version begins", "versions begin"), start, list)
	}
	return found[0], nil
}
