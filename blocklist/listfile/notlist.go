package listfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// ErrNotList means that a file is a web page or the error message of a server. Some
// servers send one in place of a list, with the status of a success.
var ErrNotList = errors.New("it is not a list")

// CheckList reads the beginning of a file, unpacked, and returns [ErrNotList] with the
// reason if it cannot be that of a list. Any other error is of reading.
func CheckList(r io.Reader) error {
	in, err := unpack(r, Options{})
	if err != nil {
		return err
	}
	defer in.close()
	start, err := in.Peek(readBuffer)
	if err != nil && err != io.EOF {
		return err
	}
	return checkList(start, len(start) == readBuffer)
}

// checkList checks the beginning of a file. More says that it goes on.
func checkList(start []byte, more bool) error {
	start = afterComments(start)
	switch {
	case webPage.Match(start):
		return fmt.Errorf("%w but a web page or XML: %s", ErrNotList, clip(firstLine(start)))
	case !more && errorMessage(start):
		return fmt.Errorf("%w but a server's message: %s", ErrNotList, clip(firstLine(start)))
	}
	return nil
}

func firstLine(s []byte) string {
	s, _, _ = bytes.Cut(s, []byte("\n"))
	return trim(string(s))
}

// webPage matches the beginning of a web page or of XML. A list may begin with
// "<user@example.com>" or "<>".
var webPage = regexp.MustCompile(`(?i)^<(!--|!doctype|\?xml|/?(html|head|meta|title|link|style|script|noscript|body|header|main|div|span|p|a|b|i|h[1-6]|br|hr|center|font|table|ul|form|iframe|img|pre|svg|rss|feed|error|response|soap:envelope|listbucketresult)[\s/>])`)

// commentMarks begin the comment lines of some format.
var commentMarks = []string{"#", ";", "!", "//"}

// afterComments returns a text without the white space and comments before its
// first other line.
func afterComments(s []byte) []byte {
	s = bytes.TrimPrefix(s, []byte(bom))
	for {
		s = bytes.TrimLeft(s, " \t\r\n\v\f\u00a0")
		end := "\n"
		switch {
		case bytes.HasPrefix(s, []byte("/*")):
			end = "*/"
		case !slices.ContainsFunc(commentMarks, func(mark string) bool { return bytes.HasPrefix(s, []byte(mark)) }):
			return s
		}
		_, rest, ok := bytes.Cut(s, []byte(end))
		if !ok {
			return nil
		}
		s = rest
	}
}

// errorMessage reports whether a text is one JSON object that tells of an error, or an
// array of one. An object with entries in it is none, nor is a list of objects.
func errorMessage(s []byte) bool {
	if len(s) == 0 || s[0] != '{' && s[0] != '[' {
		return false
	}
	members := map[string]any{}
	if s[0] == '[' {
		var array []map[string]any
		if json.Unmarshal(s, &array) != nil || len(array) != 1 {
			return false
		}
		members = array[0]
	} else if json.Unmarshal(s, &members) != nil {
		return false
	}
	onlyMessage := len(members) > 0
	for key, value := range members {
		key = strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
		switch {
		case isEmpty(value):
		case slices.Contains(errorKeys, key):
			return true
		case !slices.Contains(messageKeys, key), !strings.HasPrefix(key, "detail") && !isScalar(value):
			onlyMessage = false
		}
	}
	return onlyMessage
}

func isScalar(value any) bool {
	switch value.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}

// isEmpty reports whether a member of an object says nothing, as "error" of a success.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case float64:
		return v == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return value == false
}

var (
	// errorKeys are the names of members that only messages of an error have.
	errorKeys = []string{"error", "errors", "err", "errorcode", "errormessage", "errordescription", "errormsg", "exception", "fault"}

	// messageKeys are the names of members that messages have beside them. An object
	// with no others has no entries.
	messageKeys = []string{
		"status", "statuscode", "querystatus", "code", "success", "ok", "result", "type", "title", "message", "msg", "detail", "details",
		"description", "reason", "instance", "path", "timestamp", "time", "date", "requestid", "traceid", "id",
		"documentationurl", "documentation", "help", "hint", "retryafter",
	}
)
