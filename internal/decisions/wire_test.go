package decisions

import (
	"net/url"
	"reflect"
	"testing"
	"time"
)

// TestQueryValues: a query is the same after its way through a URL.
func TestQueryValues(t *testing.T) {
	instant := time.Date(2026, 11, 22, 15, 39, 26, 839_000_001, time.UTC)
	for _, q := range []Query{
		{},
		{ID: "2ZFPDJSVUUAR", Address: "a&b@x", Sender: "<>", Recipient: "ü@x", Domain: "x.example", List: "l", Action: "reject",
			Client: "2001:db8::1", Since: instant, Until: instant.Add(1), Limit: 50, Before: "1/2=3"},
	} {
		v, err := url.ParseQuery(q.Values().Encode())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseQuery(v); err != nil || !reflect.DeepEqual(got, q) {
			t.Errorf("%+v, %v; want %+v", got, err, q)
		}
	}
	for _, bad := range []string{"idd=x", "id=a&id=b", "since=yesterday", "limit=0", "limit=-1", "limit=x", "limit=99999999999999999999", "id"} {
		v, err := url.ParseQuery(bad)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := ParseQuery(v); err == nil && bad != "id" {
			t.Errorf("%s: %+v", bad, q)
		}
	}
}

// TestQueryFields: each field of a Query but RecipientDomains has a parameter.
func TestQueryFields(t *testing.T) {
	var q Query
	if got, want := len(q.texts())+len(q.times())+len([]string{"limit", "RecipientDomains"}), reflect.TypeFor[Query]().NumField(); got != want {
		t.Errorf("%d parameters and others, %d fields", got, want)
	}
}
