package docs

import _ "embed"

// OpenAPI is the description of the console's API. The tests of internal/console write it.
//
//go:embed openapi.json
var OpenAPI []byte
