package fleet

import (
	"encoding/json"
	"testing"
)

// TestAnswersBounded has members that answer as much as they may, after many others.
func TestAnswersBounded(t *testing.T) {
	t.Parallel()
	r := &Replies{Answers: map[string][]byte{}, Errors: map[string]error{}, bytes: maxAnswers - maxAnswer}
	for _, name := range []string{"last", "late"} {
		data, err := json.Marshal(reply{Member: name, Answer: make([]byte, maxAnswer)})
		if err != nil {
			t.Fatal(err)
		}
		r.add(data, map[string]bool{name: true})
	}
	if len(r.Answers["last"]) != maxAnswer || r.Answers["late"] != nil || r.Errors["late"] == nil {
		t.Errorf("%d answers, errors %v", len(r.Answers), r.Errors)
	}
}
