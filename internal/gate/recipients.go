package gate

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"spamgate/internal/config"
	"spamgate/internal/recipients"
	"spamgate/internal/setup"
)

// openRecipients opens the files with recipients, and keeps those of old that are
// configured as before.
func openRecipients(c *config.Config, old []*recipients.File, log *slog.Logger) ([]*recipients.File, error) {
	o := recipients.Options{StateDir: c.State.Dir, PollInterval: c.Watch.PollInterval, Logger: log}
	var files []*recipients.File
	for _, spec := range setup.RecipientFiles(c) {
		if i := slices.IndexFunc(old, func(f *recipients.File) bool { return f.Spec() == spec && f.PollInterval() == o.PollInterval }); i >= 0 {
			files = append(files, old[i])
			continue
		}
		f, err := recipients.Open(spec, o)
		if err != nil {
			return nil, errors.Join(setup.RecipientFault(c, spec, err), closeRecipients(files, old))
		}
		files = append(files, f)
	}
	return files, nil
}

// closeRecipients closes the files that kept does not have.
func closeRecipients(files, kept []*recipients.File) error {
	var errs []error
	for _, f := range files {
		if !slices.Contains(kept, f) {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
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
