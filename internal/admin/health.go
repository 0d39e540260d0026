package admin

import (
	"net/http"
	"time"

	"spamgate/internal/text"
)

// Health says whether a gate works.
type Health struct {
	// Healthy says that mail can pass, the lists are fresh and the state directory is
	// usable.
	Healthy bool `json:"healthy"`

	// Running says that a gate answered. If not, Error says why, and what to do; the
	// rest is missing.
	Running bool   `json:"running"`
	Error   string `json:"error,omitempty"`

	Time    time.Time  `json:"time"`
	Version string     `json:"version,omitempty"`
	PID     int        `json:"pid,omitempty"`
	Config  string     `json:"config,omitempty"`
	Started *time.Time `json:"started,omitempty"`

	Mail  *MailHealth  `json:"mail,omitempty"`
	Lists *ListsHealth `json:"lists,omitempty"`
	State *StateHealth `json:"state,omitempty"`

	// Decisions is the state of the history, which does not count for Healthy: mail does not
	// need it. Nil: it is off.
	Decisions *Decisions `json:"decisions,omitempty"`

	// Fleet does not count for Healthy either. Nil: the gate is in none.
	Fleet *FleetHealth `json:"fleet,omitempty"`
}

// FleetHealth says whether a gate works in its fleet. Without the fleet it serves the lists
// that it has.
type FleetHealth struct {
	Name     string   `json:"name"`
	State    string   `json:"state"`
	Problems []string `json:"problems,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

// MailHealth says whether mail can pass, and mail servers are answered.
type MailHealth struct {
	OK        bool            `json:"ok"`
	Problems  []string        `json:"problems,omitempty"`
	Warnings  []string        `json:"warnings,omitempty"` // they do not count for OK: mail can pass
	Listeners []string        `json:"listeners"`          // the addresses that are open
	Doors     []Door          `json:"doors,omitempty"`
	NextHops  []NextHopHealth `json:"next_hops"`
}

// NextHopHealth is the state of a next hop, as of just now.
type NextHopHealth struct {
	Address string     `json:"address"`
	Up      bool       `json:"up"`
	Unknown bool       `json:"unknown,omitempty"` // not up and not down: it refused a probe, which may not hold for clients
	Passed  *time.Time `json:"passed,omitempty"`  // when it last accepted MAIL
	Error   string     `json:"error,omitempty"`   // why it is not up

	// Recipients is how many recipients it accepted or refused for good in the last 10
	// minutes, and RecipientsRefused how many of them it refused.
	Recipients        int `json:"recipients"`
	RecipientsRefused int `json:"recipients_refused"`
}

// ListsHealth says whether the lists serve what is on disk or at their URL.
type ListsHealth struct {
	OK       bool         `json:"ok"`
	Problems []string     `json:"problems,omitempty"`
	Lists    []ListHealth `json:"lists"`
}

// ListHealth is the state of one list.
type ListHealth struct {
	Name    string `json:"name"`
	OK      bool   `json:"ok"`
	Entries int    `json:"entries"`

	// Updated is when its newest file was changed, or its server last confirmed the
	// copy, and Age the seconds since then.
	Updated *time.Time `json:"updated,omitempty"`
	Age     *int64     `json:"age_seconds,omitempty"`

	Held    bool   `json:"held,omitempty"`
	Pinned  bool   `json:"pinned,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// StateHealth says whether the state directory can be used.
type StateHealth struct {
	OK      bool   `json:"ok"`
	Dir     string `json:"dir"`
	Free    *int64 `json:"free_bytes,omitempty"` // if known
	Problem string `json:"problem,omitempty"`
}

// ProbePaths are the paths that Probes serves.
var ProbePaths = []string{"/healthz", "/readyz"}

// Probes returns a handler of /healthz and /readyz, for load balancers and the like. Health is
// 200 as long as the process answers. Ready returns why mail cannot pass, as far as is known,
// or nil, and warnings; each text is a line of the response. Warnings leave it at 200: 503 would
// stop the mail that passes.
func Probes(ready func() (warnings []string, err error)) http.Handler {
	say := func(w http.ResponseWriter, status int, text string) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text + "\n")) // the caller may be gone
	}
	mux := http.NewServeMux() // which takes HEAD with GET, and refuses the rest with 405
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		warnings, err := ready()
		if err != nil {
			say(w, http.StatusServiceUnavailable, "not ready: "+text.Printable(err.Error()))
			return
		}
		message := "ready"
		for _, warning := range warnings {
			message += "\nwarning: " + text.Printable(warning)
		}
		say(w, http.StatusOK, message)
	})
	return mux
}
