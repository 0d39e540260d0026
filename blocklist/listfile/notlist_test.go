package listfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"
)

// TestNotList has what servers send in place of a list, in every format that a list may
// be configured with.
func TestNotList(t *testing.T) {
	for _, text := range []string{
		"<html>\n<body>\n",
		"<!DOCTYPE html><title>Log in</title>",
		bom + "\n\n <HTML>",
		"<!--\n a comment -->\n<html>",
		strings.Repeat(" \n", 360) + "<!doctype html>",
		"<!--" + strings.Repeat("x", 720) + "-->\n<html><body>",
		strings.Repeat("# licence\n", 72) + "<html>",
		"/*" + strings.Repeat("x\n", 400) + "*/ // more\n<script>",
		"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>",
		"<Error><Code>AccessDenied</Code></Error>",
		`{"error":"rate limit exceeded"}`,
		"\n" + bom[:0] + ` {"error": {"code": 403, "message": "no"}, "data": []}` + "\n",
		`{"errors":[{"message":"Bad credentials"}]}`,
		`{"Error_Code": 5}`,
		`{"message":"Not Found","documentation_url":"https://docs.example/","status":"404"}`,
		`{"type":"about:blank","title":"Forbidden","status":403,"detail":"no","instance":"/x"}`,
		`{"success":false,"data":[]}`,
		`{"detail":[{"msg":"missing token"}]}`,
		`[{"message":"Session expired","errorCode":"INVALID_SESSION"}]`,
	} {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write([]byte(text))
		z.Close()
		for _, text := range []string{text, packed.String()} {
			if err := CheckList(strings.NewReader(text)); !errors.Is(err, ErrNotList) {
				t.Errorf("%q: %v", text, err)
			}
			for _, f := range Formats {
				if got := readOnce(strings.NewReader(text), Options{Format: f}); !errors.Is(got.err, ErrNotList) || len(got.entries) > 0 {
					t.Errorf("%q as %s: %v, %d entries", text, f, got.err, len(got.entries))
				}
			}
		}
	}
}

// TestStillList has lists that begin like something else.
func TestStillList(t *testing.T) {
	for _, text := range []string{
		"", "\n", "<>\n", "<bounce@example.com>\n", "<a@example.com>\n", "<example.com>\n", "# <html>\n", "; <html>\nexample.com\n",
		"! Title: <html>\n||example.com^\n", "!good.example.com\nexample.com\n", "[192.0.2.1]\n", "[]", "{}",
		`["error","errors"]`, `{"domain":"error.example"}`, `{"error":null,"data":["example.com"]}`, `{"error":false,"domains":["example.com"]}`,
		`{"status":"ok","result":["example.com"]}`, `{"title":"Names","domains":["example.com"]}`, `[{"domain":"example.com","error":""}]`,
		"{\"domain\":\"example.com\",\"error\":\"x\"}\n{\"domain\":\"example.net\"}\n",
		`[{"domain":"example.com","status":404},{"domain":"example.net","status":404}]`,
		`{"error":"` + strings.Repeat("x", readBuffer) + `"}`, // no message is that long
		strings.Repeat("#\n", readBuffer),
	} {
		if err := CheckList(strings.NewReader(text)); err != nil {
			t.Errorf("%.80q: %v", text, err)
		}
	}
}
