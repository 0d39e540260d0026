package gate

import (
	"context"
	"errors"
	"slices"

	"spamgate/internal/config"
	"spamgate/internal/recipients"
	"spamgate/internal/setup"
)

// prepareRecipients opens the files with recipients (see part), and keeps those that are configured as
// before.
func (g *gate) prepareRecipients(ctx context.Context, was, c *config.Config) (change, error) {
	o := recipients.Options{StateDir: c.State.Dir, PollInterval: c.Watch.PollInterval, Logger: g.log}
	old := g.recipients
	var files []*recipients.File
	for _, spec := range setup.RecipientFiles(c) {
		if i := slices.IndexFunc(old, func(f *recipients.File) bool { return f.Spec() == spec && f.PollInterval() == o.PollInterval }); i >= 0 {
			files = append(files, old[i])
			continue
		}
		f, err := recipients.Open(spec, o)
		if err != nil {
			return change{}, errors.Join(setup.RecipientFault(c, spec, err), closeOthers(files, old))
		}
		files = append(files, f)
	}
	return replacement(old, files, func() {
		g.recipients = files
		if was != nil {
			lookAtRecipients(ctx, files)
		}
	}), nil
}

// lookAtRecipients reads the files that have changed, and returns those whose version on
// disk does not serve.
func lookAtRecipients(ctx context.Context, files []*recipients.File) []recipients.Status {
	var failed []recipients.Status
	for _, f := range files {
		if ctx.Err() == nil && f.Look() != nil {
			failed = append(failed, f.Status())
		}
	}
	return failed
}

// recipientDomains returns the domains for which mail is accepted; none: all.
func (g *gate) recipientDomains() []string {
	for _, f := range g.recipients {
		if f.Spec().Kind == recipients.RecipientDomains {
			return f.Domains().Names()
		}
	}
	return g.config.Policy.RecipientDomains
}
