package decisions

import (
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// texts are the fields of a Query that are texts, by their names in a URL.
func (q *Query) texts() map[string]*string {
	return map[string]*string{
		"id": &q.ID, "address": &q.Address, "sender": &q.Sender, "recipient": &q.Recipient, "domain": &q.Domain,
		"list": &q.List, "action": &q.Action, "client": &q.Client, "before": (*string)(&q.Before),
	}
}

// times are the fields of a Query that are times.
func (q *Query) times() map[string]*time.Time {
	return map[string]*time.Time{"since": &q.Since, "until": &q.Until}
}

// Values returns a Query as the parameters of a URL, without RecipientDomains: who asks by URL
// sees what the socket lets him see.
func (q Query) Values() url.Values {
	v := url.Values{}
	for name, field := range q.texts() {
		if *field != "" {
			v.Set(name, *field)
		}
	}
	for name, field := range q.times() {
		if !field.IsZero() {
			v.Set(name, field.UTC().Format(time.RFC3339Nano))
		}
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	return v
}

// ParseQuery returns the Query of the parameters of a URL. An unknown or repeated parameter is an
// error: it would be a search for something else.
func ParseQuery(v url.Values) (q Query, err error) {
	texts, times := q.texts(), q.times()
	for name, values := range v {
		if len(values) != 1 {
			return q, fmt.Errorf("%q appears more than once", name)
		}
		value := values[0]
		switch {
		case texts[name] != nil:
			*texts[name] = value
		case times[name] != nil:
			*times[name], err = time.Parse(time.RFC3339Nano, value)
		case name == "limit":
			q.Limit, err = strconv.Atoi(value)
			if err == nil && q.Limit < 1 {
				err = strconv.ErrRange
			}
		default:
			return q, fmt.Errorf("the parameter %q is not known", name)
		}
		if err != nil {
			return q, fmt.Errorf("%s=%q cannot be read: %w", name, value, err)
		}
	}
	return q, nil
}
