package accounts

import (
	"fmt"
	"slices"
	"time"
)

// sessionsName is the file with sessions.
const sessionsName = "sessions.json"

const (
	// idleLimit and sessionLimit end a session: an hour without a request, and a working day.
	idleLimit    = time.Hour
	sessionLimit = 12 * time.Hour

	// seenStep is how old the time of the last request may be in the file.
	seenStep = time.Minute

	// A login beyond these ends the session that has been idle longest: of the user, or of
	// all.
	maxSessionsOf = 20
	maxSessions   = 2000

	// maxPlaces is from how many networks a user's logins are known, and from how many
	// browsers.
	maxPlaces = 8
)

// sessionsFile is the content of the file.
type sessionsFile struct {
	Version  int       `json:"version"`
	Sessions []session `json:"sessions"`
	Places   []place   `json:"places"`

	byDigest map[string]*session
}

type session struct {
	Digest string    `json:"sha256"` // of the cookie
	Name   string    `json:"name"`   // of the user
	Epoch  string    `json:"epoch"`  // of the user when it began
	From   string    `json:"from,omitempty"`
	Began  time.Time `json:"began"`
	Seen   time.Time `json:"seen"` // the last request
}

// place is a network or a browser from which a user has logged in.
type place struct {
	Name    string    `json:"name"`
	Network string    `json:"network,omitempty"`
	Browser string    `json:"browser,omitempty"` // the hash of its secret; "": the place is a network
	Last    time.Time `json:"last"`
}

func (p *place) same(q place) bool {
	return p.Name == q.Name && p.Network == q.Network && p.Browser == q.Browser
}

// clone returns a copy that can be changed.
func (f *sessionsFile) clone() *sessionsFile {
	return &sessionsFile{Version: fileVersion, Sessions: slices.Clone(f.Sessions), Places: slices.Clone(f.Places)}
}

// check implements content.
func (f *sessionsFile) check() error {
	f.byDigest = map[string]*session{}
	for i := range f.Sessions {
		s := &f.Sessions[i]
		if err := checkDigest(s.Digest); err != nil || f.byDigest[s.Digest] != nil {
			return fmt.Errorf("the session %d of %q has an invalid sha256", i+1, s.Name)
		}
		f.byDigest[s.Digest] = s
	}
	return nil
}

// known returns the place from which a user has logged in before and does so again: the
// browser, else the network. The zero place is none.
func (f *sessionsFile) known(name string, from Origin) place {
	if sum, ok := digest(from.Browser); ok {
		if p := (place{Name: name, Browser: sum}); f.has(p) {
			return p
		}
	}
	if p := (place{Name: name, Network: network(from.Address)}); f.has(p) {
		return p
	}
	return place{}
}

func (f *sessionsFile) has(p place) bool { return slices.ContainsFunc(f.Places, p.same) }

// renew replaces the secret of a browser, for all users who have logged in there.
func (f *sessionsFile) renew(secret, sum string) {
	old, ok := digest(secret)
	if !ok {
		return
	}
	for i := range f.Places {
		if f.Places[i].Browser == old {
			f.Places[i].Browser = sum
		}
	}
}

// lastLogin returns when a user has logged in last; zero if that is not known.
func (f *sessionsFile) lastLogin(name string) (last time.Time) {
	for _, p := range f.Places {
		if p.Name == name && p.Last.After(last) {
			last = p.Last
		}
	}
	return last
}

// add adds a session, and ends others that are too many.
func (f *sessionsFile) add(s session) {
	for f.count(s.Name) >= maxSessionsOf {
		f.endIdle(s.Name)
	}
	for len(f.Sessions) >= maxSessions {
		f.endIdle("")
	}
	f.Sessions = append(f.Sessions, s)
}

func (f *sessionsFile) count(name string) (n int) {
	for _, s := range f.Sessions {
		if s.Name == name {
			n++
		}
	}
	return n
}

// endIdle ends the session of a user, or of all if the name is "", that was idle longest.
func (f *sessionsFile) endIdle(name string) {
	idle := -1
	for i, s := range f.Sessions {
		if (name == "" || s.Name == name) && (idle < 0 || s.Seen.Before(f.Sessions[idle].Seen)) {
			idle = i
		}
	}
	f.Sessions = slices.Delete(f.Sessions, idle, idle+1)
}

// remember notes a login, and forgets the oldest place of its kind beyond maxPlaces.
func (f *sessionsFile) remember(place place) {
	f.Places = slices.DeleteFunc(f.Places, place.same)
	oldest, n := -1, 0
	for i, p := range f.Places {
		if p.Name != place.Name || (p.Browser == "") != (place.Browser == "") {
			continue
		}
		if n++; oldest < 0 || p.Last.Before(f.Places[oldest].Last) {
			oldest = i
		}
	}
	if n >= maxPlaces {
		f.Places = slices.Delete(f.Places, oldest, oldest+1)
	}
	f.Places = append(f.Places, place)
}

// prune removes sessions that have ended, and what belongs to users who are gone.
func (f *sessionsFile) prune(a *accountsFile, now time.Time) {
	f.Sessions = slices.DeleteFunc(f.Sessions, func(s session) bool { return !s.counts(a, now) })
	f.Places = slices.DeleteFunc(f.Places, func(p place) bool { return a.byName[p.Name] == nil })
}

// counts reports whether a session has not ended. One that begins in the future would last
// too long: the clock was set back.
func (s *session) counts(a *accountsFile, now time.Time) bool {
	u := a.byName[s.Name]
	return u != nil && u.Epoch == s.Epoch &&
		now.Sub(s.Began) < sessionLimit && now.Sub(s.Seen) < idleLimit && s.Began.Sub(now) < clockSkew
}

// shown returns the session for others.
func (s *session) shown() Session {
	return Session{
		ID: s.Digest[:sessionID], Name: s.Name, From: s.From,
		Began: s.Began, Seen: s.Seen, Ends: s.Began.Add(sessionLimit),
	}
}

// sessionID is how many digits of its hash name a session.
const sessionID = 16
