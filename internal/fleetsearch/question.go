package fleetsearch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"spamgate/internal/decisions"
)

// Subject is the subject of the questions: see fleet.Member.Ask.
const Subject = "decisions"

// Question is a search in several histories.
type Question struct {
	decisions.Query // Before is "" or the Next of a Page

	Asker string // the gate that asks, which searches its own history by itself
	Only  string // the only gate that is to answer; "": all
}

// wire is a Question as it travels.
type wire struct {
	Asker string `json:"asker"`
	Only  string `json:"only,omitempty"`
	Query string `json:"query"` // as in a URL

	// RecipientDomains is nil if the answer is not restricted. There is no omitempty, since an
	// empty one is another restriction.
	RecipientDomains []string `json:"recipient_domains"`
}

// Encode encodes a question.
func (q *Question) Encode() ([]byte, error) {
	return json.Marshal(wire{q.Asker, q.Only, q.Values().Encode(), q.RecipientDomains})
}

var errQuestion = errors.New("the question is invalid, or that of a later version")

// parse parses a question. What this version does not know may be a restriction, and is an error.
func parse(text []byte) (q Question, err error) {
	var w wire
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&w); err != nil || d.More() {
		return q, errQuestion
	}
	v, err := url.ParseQuery(w.Query)
	if err != nil {
		return q, errQuestion
	}
	if q.Query, err = decisions.ParseQuery(v); err != nil {
		return q, fmt.Errorf("%w: %w", errQuestion, err)
	}
	q.Asker, q.Only, q.RecipientDomains = w.Asker, w.Only, w.RecipientDomains
	return q, nil
}

// Find finds decisions in the history of one gate.
type Find func(context.Context, decisions.Query) (decisions.Page, error)

const (
	// AnswerTime is how long a gate waits for the answers of others, and searchTime how long
	// those search: what they have found until then arrives in time.
	AnswerTime = 3 * time.Second
	searchTime = 2500 * time.Millisecond

	// MaxRows bounds the decisions of an answer, and maxBytes its size: they are the bounds of
	// what a NATS server takes, with the encoding around it.
	MaxRows  = 500
	maxBytes = 500 << 10
)

// Answer answers the question of another gate from the history of the gate with the name. It
// implements fleet.Answer with its last two parameters.
func Answer(name string, find Find) func(ctx context.Context, question []byte) ([]byte, error) {
	return func(ctx context.Context, question []byte) ([]byte, error) {
		q, err := parse(question)
		if err != nil {
			return nil, err
		}
		if q.Asker == name || q.Only != "" && q.Only != name {
			return encode(decisions.Page{})
		}
		ctx, cancel := context.WithTimeout(ctx, searchTime)
		defer cancel()
		page, err := q.Here(ctx, name, find)
		if err != nil {
			return nil, err
		}
		return encode(page)
	}
}

// Here searches the history of the gate with the name.
func (q *Question) Here(ctx context.Context, name string, find Find) (decisions.Page, error) {
	from, err := parseCursor(q.Before)
	if err != nil {
		return decisions.Page{}, err
	}
	query, more := from.query(q.Query, name)
	if !more {
		return decisions.Page{}, nil
	}
	query.Limit = q.rows()
	return find(ctx, query)
}

// defaultRows is how many decisions a page has if the question does not say it.
const defaultRows = 100

// limit returns how many decisions a page has at most, and rows how many of them one gate tells.
func (q *Question) limit() int {
	if q.Limit <= 0 {
		return defaultRows
	}
	return q.Limit
}

func (q *Question) rows() int { return min(q.limit(), MaxRows) }
