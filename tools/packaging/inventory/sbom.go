package main

import (
	"debug/buildinfo"
	"io"
	"path"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes the bill of materials of a program as CycloneDX JSON.
func writeSBOM(w io.Writer, info *buildinfo.BuildInfo, modules []module, version string, date time.Time) error {
	goos, goarch := setting(info, "GOOS"), setting(info, "GOARCH")
	root := "pkg:golang/spamgate@v" + version + "?goos=" + goos + "&goarch=" + goarch + "&type=module"
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: date.Format(time.RFC3339),
		Component: &cdx.Component{
			BOMRef: root, Type: cdx.ComponentTypeApplication, Name: path.Base(info.Path), Version: version, PackageURL: root,
			Properties: &[]cdx.Property{
				{Name: "go:version", Value: info.GoVersion},
				{Name: "go:os", Value: goos},
				{Name: "go:arch", Value: goarch},
				{Name: "go:cgo", Value: setting(info, "CGO_ENABLED")},
			},
		},
	}
	var components []cdx.Component
	var refs []string
	for _, m := range modules {
		url := "pkg:golang/" + m.Path + "@" + m.Version
		c := cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url}
		if m.Sum != "" { // Go's own hash of the module, which go.sum and sum.golang.org have
			c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
		}
		var ids cdx.Licenses
		for _, l := range m.licences {
			if l.id != "" {
				ids = append(ids, cdx.LicenseChoice{License: &cdx.License{ID: l.id}})
			}
		}
		if ids != nil {
			c.Licenses = &ids
		}
		components = append(components, c)
		refs = append(refs, url)
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: root, Dependencies: &refs}}
	return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false).EncodeVersion(bom, cdx.SpecVersion1_6)
}

// setting returns a setting that the program was built with.
func setting(info *buildinfo.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return strings.TrimSpace(s.Value)
		}
	}
	return ""
}
