package lists

import (
	"context"

	"spamgate/blocklist/store"
	"spamgate/internal/cli/local"
	"spamgate/internal/managed"
)

// loadManaged finds the stored versions of a managed list.
func (r *rollback) loadManaged() error {
	gate := local.DialGate(r.config)
	defer gate.Close()
	file := r.target.Copy
	versions, err := editorOf(r.config, gate).Versions(r, r.target.Name)
	for _, v := range versions {
		r.versions = append(r.versions, store.VersionInfo{ID: v.ID, Time: v.Time, Entries: v.Entries, Sum: v.Sum, Files: []string{file}, Bytes: v.Bytes})
		if v.OnDisk {
			r.now = v.Sum
		}
	}
	r.target.Paths = []string{file}
	return err
}

// runManaged puts a version of a managed list back.
func (r *rollback) runManaged(ctx context.Context, v store.VersionInfo) (*rollbackResult, error) {
	gate := local.DialGate(r.config)
	defer gate.Close()
	file := r.target.Copy
	drops := r.drops(ctx, gate, v)
	_, err := editorOf(r.config, gate).Rollback(ctx, r.target.Name, v.ID, managed.Options{DryRun: r.dryRun, Why: r.why})
	if err != nil {
		return nil, err
	}
	result := &rollbackResult{
		List: r.target.Name, Version: v.ID, Time: v.Time.UTC(), Entries: v.Entries, DryRun: r.dryRun,
		Files: []string{file}, Steps: []rollbackStep{{File: file, What: stepWrite}},
		Old:   r.newest(func(sum string) bool { return sum == r.now }),
		Again: r.newest(func(sum string) bool { return sum != v.Sum }),
		Drops: drops,
	}
	if !r.dryRun {
		result.Gate = gate.Rescan(ctx, r.target.Name)
	}
	return result, nil
}
