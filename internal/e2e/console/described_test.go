package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"spamgate/docs"
)

// object is an object of JSON.
type object = map[string]any

// conforms returns why a value is not one of a schema of docs/openapi.json, or "".
func conforms(spec, schema object, value any, place string) string {
	if ref, ok := schema["$ref"].(string); ok {
		named := spec["components"].(object)["schemas"].(object)
		return conforms(spec, named[ref[strings.LastIndexByte(ref, '/')+1:]].(object), value, place)
	}
	if want := schema["type"]; want != nil {
		types, ok := want.([]any)
		if !ok {
			types = []any{want}
		}
		if !slices.Contains(types, any(jsonType(value))) && !(jsonType(value) == "integer" && slices.Contains(types, any("number"))) {
			return fmt.Sprintf("%s is %s, not %v", place, jsonType(value), want)
		}
	}
	switch value := value.(type) {
	case []any:
		for i, v := range value {
			if why := conforms(spec, schema["items"].(object), v, fmt.Sprintf("%s[%d]", place, i)); why != "" {
				return why
			}
		}
	case object:
		properties, _ := schema["properties"].(object)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := value[name.(string)]; !ok {
				return fmt.Sprintf("%s lacks %s", place, name)
			}
		}
		for name, v := range value {
			inner, known := properties[name].(object)
			if !known {
				inner, known = schema["additionalProperties"].(object)
			}
			if !known && schema["additionalProperties"] == false {
				return fmt.Sprintf("%s has %s, which is not described", place, name)
			}
			if known {
				if why := conforms(spec, inner, v, place+"."+name); why != "" {
					return why
				}
			}
		}
	case string:
		if _, err := time.Parse(time.RFC3339Nano, value); schema["format"] == "date-time" && err != nil {
			return fmt.Sprintf("%s is %q, not a time", place, value)
		}
	}
	return ""
}

// jsonType returns the type of a decoded value as JSON Schema names it.
func jsonType(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	}
	return "object"
}

// described fails the test unless docs/openapi.json has the answer to a request.
func described(t testing.TB, method, pattern string, status int, contentType string, body []byte) {
	t.Helper()
	var spec object
	if err := json.Unmarshal(docs.OpenAPI, &spec); err != nil {
		t.Fatal(err)
	}
	op, ok := spec["paths"].(object)[pattern].(object)[strings.ToLower(method)].(object)
	if !ok {
		t.Fatalf("%s %s is not described", method, pattern)
	}
	responses := op["responses"].(object)
	response, ok := responses[strconv.Itoa(status)].(object)
	if !ok && status >= http.StatusBadRequest {
		response, ok = responses["default"].(object)
	}
	if !ok {
		t.Fatalf("%s %s: status %d is not described", method, pattern, status)
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil || contentType != "application/json" {
		t.Fatalf("%s %s: %s, %v: %q", method, pattern, contentType, err, body)
	}
	schema := response["content"].(object)["application/json"].(object)["schema"].(object)
	if why := conforms(spec, schema, value, "the answer"); why != "" {
		t.Errorf("%s %s, status %d: %s\n%s", method, pattern, status, why, body)
	}
}
