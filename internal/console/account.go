package console

import (
	"errors"
	"net/http"
	"time"

	"spamgate/internal/accounts"
)

var accountRoutes = []route{
	{"GET", "/account", accounts.Enter, (*exchange).account},
	{"POST", "/account/password", accounts.Enter, (*exchange).changePassword},
	{"POST", "/account/sessions/end", accounts.Enter, (*exchange).endSession},
	{"POST", "/account/sessions/end-others", accounts.Enter, (*exchange).endOtherSessions},
}

// accountPage is what the page of one's own account shows.
type accountPage struct {
	May      []string // what the account may do
	Limit    time.Duration
	Sessions []ownSession
	Others   int // sessions beside this one
	Done     string
	Problem  string // with the password
}

// ownSession is a session of the account.
type ownSession struct {
	accounts.Session
	This bool
	When string // short, when it began
	Used string
}

// accountDone are the notices of the page by the field "done" in its URL.
var accountDone = map[string]string{
	"password": "The password has been changed. All other sessions have ended.",
	"session":  "The session has been ended.",
	"sessions": "All other sessions have been ended.",
	"here":     "The other sessions on this gate have been ended, but the other gates of the fleet could not be reached: try again.",
}

func (x *exchange) account() error {
	return x.showAccount(accountPage{Done: accountDone[x.query("done")]})
}

// showAccount answers with the page.
func (x *exchange) showAccount(p accountPage) error {
	p.May = rights(x.who)
	p.Limit, _ = x.who.Longest()
	if !x.sso {
		sessions, err := x.console.Accounts.Sessions(x.who.Name)
		if err != nil {
			return err
		}
		for _, s := range sessions {
			this := s.ID == x.session.ID
			p.Sessions = append(p.Sessions, ownSession{s, this, shortTime(s.Began, x.console.Now()), shortTime(s.Seen, x.console.Now())})
			if !this {
				p.Others++
			}
		}
	}
	return x.render("account", view{Title: "Your account", Nav: "/account", Data: p})
}

// rights names what an account may do.
func rights(who accounts.Account) (may []string) {
	for _, a := range accounts.Actions() {
		if who.MaySome(a) {
			may = append(may, a.String())
		}
	}
	return may
}

// errNoPassword says that the account's password is elsewhere.
var errNoPassword = failure{http.StatusConflict, "A proxy logs you in: the password is kept there."}

// changePassword checks the old password as a login does, with its limits. The change ends all
// sessions; a new one begins.
func (x *exchange) changePassword() error {
	if x.sso {
		return errNoPassword
	}
	old, fresh := x.r.PostFormValue("old"), x.r.PostFormValue("new")
	if fresh != x.r.PostFormValue("again") {
		return x.passwordProblem("The new password was not repeated alike.")
	}
	session, err := x.console.Accounts.ChangePassword(x.r.Context(), x.who.Name, old, fresh, x.origin())
	var limited *accounts.LimitedError
	switch {
	case errors.As(err, &limited):
		x.logFailedLogin(x.who.Name, err)
		return x.passwordProblem(tooMany(limited))
	case errors.Is(err, accounts.ErrBusy):
		return x.passwordProblem(manyAtOnce)
	case errors.Is(err, accounts.ErrWrong):
		x.logFailedLogin(x.who.Name, err)
		return x.passwordProblem("The old password is wrong.")
	case errors.Is(err, accounts.ErrPassword), errors.As(err, new(*accounts.RefusedError)):
		return x.passwordProblem(sentence(err))
	case err != nil:
		return err
	}
	x.console.Logger.Info("console password changed", "client", x.clientAddress(), "user", x.who.Name)
	x.setCookies(session)
	return x.redirect("/account?done=password")
}

// passwordProblem shows the page with what is wrong.
func (x *exchange) passwordProblem(text string) error {
	x.status = http.StatusUnprocessableEntity
	return x.showAccount(accountPage{Problem: text})
}

func (x *exchange) endSession() error {
	err := x.console.Accounts.EndID(x.who.Name, x.form("session"))
	if err != nil && !errors.Is(err, accounts.ErrNoSession) { // it has ended by itself
		return err
	}
	return x.redirect("/account?done=session")
}

func (x *exchange) endOtherSessions() error {
	switch _, err := x.console.Accounts.EndAll(x.who.Name, x.session.ID); {
	case errors.Is(err, accounts.ErrHereOnly):
		return x.redirect("/account?done=here")
	case err != nil:
		return err
	}
	return x.redirect("/account?done=sessions")
}
