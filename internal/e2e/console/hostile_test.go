package console

import (
	"net/http"
	"strings"
	"testing"

	"spamgate/internal/e2e/harness"
)

// TestDemoted wants that an account with a lower role than before brings nothing back that it may
// not add now: its former self has removed an entry that counted for good.
func TestDemoted(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{})
	former := s.as("desk", "editor")
	ask(t, former, http.StatusCreated, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": bob})
	removal := ask(t, former, http.StatusOK, "DELETE", "/api/v1/lists/allowed/entries/"+bob, entryPattern, nil)["change"].(string)
	s.Command(t, 0, "console", "token", "remove", "desk")
	api := s.as("desk", "helpdesk")
	ask(t, api, http.StatusForbidden, "POST", "/api/v1/changes/"+removal+"/undo", undoPattern, object{})
	added := ask(t, api, http.StatusCreated, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": bob, "until": "1h"})["change"].(string)
	ask(t, api, http.StatusOK, "POST", "/api/v1/changes/"+added+"/undo", undoPattern, object{})
}

// TestLongReasons wants no records in the audit log that are longer than people read.
func TestLongReasons(t *testing.T) {
	t.Parallel()
	s := startSite(t, harness.Setup{})
	long := strings.Repeat("z", 501)
	ask(t, s.api, http.StatusBadRequest, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": bob, "reason": long})
	added := ask(t, s.api, http.StatusCreated, "POST", "/api/v1/lists/allowed/entries", entriesPattern, object{"entry": bob})["change"].(string)
	ask(t, s.api, http.StatusBadRequest, "POST", "/api/v1/changes/"+added+"/undo", undoPattern, object{"why": long})
	ask(t, s.api, http.StatusBadRequest, "DELETE", "/api/v1/lists/allowed/entries/"+bob+"?reason="+long, entryPattern, nil)
}
