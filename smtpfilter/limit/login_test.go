package limit

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// TestLogin limits a login from whatever address it is used, and no client without it.
func TestLogin(t *testing.T) {
	clock := newClock()
	l := New(Config{Login: LoginLimits{MessagesPerMinute: 3, RecipientsPerMinute: 2}, Now: clock.now, Exempt: []netip.Prefix{netip.MustParsePrefix("192.0.2.9/32")}})
	anna, otto := LoginOf("anna"), LoginOf("otto")
	for i := range 3 {
		if v := l.MessageOf(addr(fmt.Sprintf("192.0.2.%d", i+1)), anna); !v.Allowed() {
			t.Error(v)
		}
	}
	want := Result{MessagesPerMinute, Login, 3, 20 * time.Second}
	for _, a := range []netip.Addr{addr("192.0.2.1"), addr("2001:db8::1"), {}} {
		if v := l.MessageOf(a, anna); v != want || v.Key() != "login_messages_per_minute" || v.String() != "messages per minute of a login: 3" {
			t.Errorf("%v: %+v", a, v)
		}
	}
	for _, v := range []Result{
		l.MessageOf(addr("192.0.2.1"), otto), l.Message(addr("192.0.2.1")), l.MessageOf(addr("192.0.2.9"), anna),
		l.RecipientOf(addr("192.0.2.1"), anna), l.RecipientOf(addr("192.0.2.1"), anna),
	} {
		if !v.Allowed() {
			t.Error(v)
		}
	}
	if v := l.RecipientOf(addr("192.0.2.1"), anna); v.Key() != "login_recipients_per_minute" {
		t.Errorf("%+v", v)
	}
	clock.advance(20 * time.Second)
	if v := l.MessageOf(addr("192.0.2.1"), anna); !v.Allowed() {
		t.Error(v)
	}
}

// TestLoginRefusedUsesNothing: a message that the login may not send does not use up the
// allowance of its client, and the other way round.
func TestLoginRefusedUsesNothing(t *testing.T) {
	l := New(Config{Client: Limits{MessagesPerMinute: 2}, Login: LoginLimits{MessagesPerMinute: 1}, Now: newClock().now})
	a, b, anna := addr("192.0.2.1"), addr("192.0.2.2"), LoginOf("anna")
	l.MessageOf(a, anna)
	for range 5 {
		if v := l.MessageOf(a, anna); v.Scope != Login {
			t.Errorf("%+v", v)
		}
	}
	if v := l.Message(a); !v.Allowed() {
		t.Error("the client's allowance is gone:", v)
	}
	l.Message(b)
	l.Message(b)
	for range 5 {
		if v := l.MessageOf(b, LoginOf("otto")); v.Scope != Client {
			t.Errorf("%+v", v)
		}
	}
	if v := l.MessageOf(a, LoginOf("otto")); v.Scope != Client {
		t.Errorf("%+v", v)
	}
	if v := l.MessageOf(addr("192.0.2.3"), LoginOf("otto")); !v.Allowed() {
		t.Error("the login's allowance is gone:", v)
	}
}

// TestLoginsBounded floods the table with logins.
func TestLoginsBounded(t *testing.T) {
	const most = 100
	clock := newClock()
	l := New(Config{Client: Limits{MessagesPerMinute: 5}, Network: Limits{MessagesPerMinute: 500}, Login: LoginLimits{MessagesPerMinute: 1}, MaxEntries: most, Now: clock.now})
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 20 * most {
		a := numbered(r.IntN(1 << 16))
		if v := l.MessageOf(a, LoginOf(fmt.Sprint(i))); !v.Allowed() && v.Scope == Login {
			t.Fatal("a new login is limited:", v)
		}
		if n, _ := l.size(t); n > most {
			t.Fatalf("%d entries, want at most %d", n, most)
		}
	}
	clock.advance(2 * time.Minute)
	for range most {
		l.Message(addr("192.0.2.1"))
	}
	if n, _ := l.size(t); n > 2 {
		t.Errorf("%d entries after two quiet minutes", n)
	}

	// The smallest table still counts each of client, network and login.
	l = New(Config{Client: Limits{MessagesPerMinute: 9}, Network: Limits{MessagesPerMinute: 9}, Login: LoginLimits{MessagesPerMinute: 1}, MaxEntries: 1, Now: clock.now})
	a, anna := addr("192.0.2.1"), LoginOf("anna")
	l.MessageOf(a, anna)
	if v := l.MessageOf(a, anna); v.Scope != Login {
		t.Errorf("the login was dropped for its own client: %+v", v)
	}
}
