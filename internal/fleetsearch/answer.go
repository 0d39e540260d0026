package fleetsearch

import (
	"encoding/json"
	"errors"
	"time"

	"spamgate/internal/decisions"
)

// answer is a page as it travels.
type answer struct {
	decisions.Page
	Places []decisions.Cursor `json:"places,omitempty"`
}

// encode encodes a page, without its oldest decisions if it is too long for an answer.
func encode(page decisions.Page) ([]byte, error) {
	size := 0
	for i := range page.Decisions {
		row, err := json.Marshal(page.Decisions[i])
		if err != nil {
			return nil, err
		}
		if size += len(row) + len(page.Places[i]) + 4; size > maxBytes {
			page.Decisions, page.Next = page.Decisions[:i], page.Places[i]
			break
		}
	}
	return json.Marshal(answer{page, page.Places[:len(page.Decisions)]})
}

var errAnswer = errors.New("its answer is invalid")

// maxFault bounds what another gate says about its history, in bytes.
const maxFault = 200

// read reads the answer of another gate. Decisions that were not asked for are left out.
func (q *Question) read(text []byte, now time.Time) (decisions.Page, error) {
	var a answer
	if json.Unmarshal(text, &a) != nil || len(a.Decisions) > q.rows() || len(a.Places) != len(a.Decisions) || a.Next.Check() != nil {
		return decisions.Page{}, errAnswer
	}
	page := a.Page
	page.Decisions = []decisions.Decision{}
	for i, d := range a.Decisions {
		if a.Places[i] == "" || a.Places[i].Check() != nil {
			return decisions.Page{}, errAnswer
		}
		if d.Trim(now); q.Match(&d) && q.Cut(&d) {
			page.Decisions, page.Places = append(page.Decisions, d), append(page.Places, a.Places[i])
		}
	}
	if page.Reach != nil && (page.Reach.Year() < 1980 || page.Reach.After(now)) {
		page.Reach = nil
	}
	if len(page.Fault) > maxFault {
		page.Fault = page.Fault[:maxFault] + "..."
	}
	return page, nil
}
