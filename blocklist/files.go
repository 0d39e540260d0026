package blocklist

// Files expands the paths and globs of a [List] into its files, as a [Store]
// does: in the order of the paths, those of a glob by name, each once. An error
// is a *[fs.PathError].
func Files(paths []string) ([]string, error) {
	return findFiles(paths, func(string, string) {})
}
