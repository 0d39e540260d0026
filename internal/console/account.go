package console

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"spamgate/internal/accounts"
	"spamgate/internal/web"
)

var entranceRoutes = []route{
	{"GET", "/login", anyone, (*exchange).loginPage},
	{"POST", "/login", anyone, (*exchange).login},
	{"POST", "/logout", entered, (*exchange).logout},
	{"GET", "/{$}", entered, (*exchange).home},
	{"GET", "/static/{file}", anyone, (*exchange).static},
}

// home sends everyone to the first page that they may see, and the help desk to the mail.
func (x *exchange) home() error {
	if x.who.Role == accounts.Helpdesk {
		return x.redirect("/mail")
	}
	for _, p := range navigation {
		if x.who.MaySome(p.may) {
			return x.redirect(p.Path)
		}
	}
	return errForbidden
}

// loginForm is what the login page shows.
type loginForm struct {
	To, Name, Problem string
}

func (x *exchange) loginPage() error {
	in, err := x.authenticate()
	switch {
	case err != nil:
		return err
	case in:
		return x.redirect(localPath(x.query("to")))
	}
	f := loginForm{To: localPath(x.query("to"))}
	if len(x.namedByProxy()) == 1 {
		f.Problem = "The proxy has logged you in, but there is no account of your name here. Ask an administrator for one."
	}
	return x.render("login", view{Title: "Log in", Data: f})
}

func (x *exchange) login() error {
	if err := x.parseForm(); err != nil {
		return err
	}
	f := loginForm{To: localPath(x.form("to")), Name: x.form("name")}
	defer web.Hold(x.r)() // the form is here, and few wait to have their passwords checked
	session, err := x.console.Accounts.Login(x.r.Context(), f.Name, x.r.PostFormValue("password"), x.origin())
	var limited *accounts.LimitedError
	switch {
	case err == nil:
		if err := x.endFormer(); err != nil {
			return err
		}
		x.setCookies(session)
		x.console.Logger.Info("console login", "client", x.clientAddress(), "user", session.Name)
		return x.redirect(f.To)
	case errors.As(err, &limited):
		x.w.Header().Set("Retry-After", strconv.Itoa(limited.Seconds()))
		f.Problem, x.status = tooMany(limited), http.StatusTooManyRequests
	case errors.Is(err, accounts.ErrBusy):
		f.Problem, x.status = manyAtOnce, http.StatusServiceUnavailable
	case errors.Is(err, accounts.ErrWrong):
		f.Problem, x.status = "The name or the password is wrong.", http.StatusUnauthorized
	default:
		_, unread := x.console.Accounts.Check()
		if unread == nil {
			return err
		}
		failed := x.unreadable(unread)
		f.Problem, x.status = failed.text, failed.status
		return x.render("login", view{Title: "Log in", Data: f})
	}
	x.logFailedLogin(f.Name, err)
	return x.render("login", view{Title: "Log in", Data: f})
}

// Why a login or a change of the password was not tried.
const manyAtOnce = "Many people are logging in. Try again in some seconds."

func tooMany(e *accounts.LimitedError) string {
	return fmt.Sprintf("Too many attempts. Try again in %d s.", e.Seconds())
}

// logFailedLogin logs a wrong password. Attempts that a limit refused are logged at most once
// in a second, since anybody can make thousands.
func (x *exchange) logFailedLogin(name string, err error) {
	if !errors.Is(err, accounts.ErrWrong) && !x.console.limitedLogins.due(x.console.Now()) {
		return
	}
	user, invalid := accounts.ParseName(name)
	if invalid != nil {
		user = "?" // people type their passwords into the wrong field
	}
	x.console.Logger.Warn("console login failed", "client", x.clientAddress(), "user", user, "error", err)
}

// endFormer ends the session of the cookie that the browser has.
func (x *exchange) endFormer() error {
	c, err := x.r.Cookie(x.console.cookieName())
	if err != nil {
		return nil // it has none
	}
	return x.console.Accounts.End(c.Value)
}

// browserDays is how long a browser keeps the secret by which a login knows it.
const browserDays = 180

// setCookies gives the browser the session's cookie, which it keeps until it is closed, and the
// one by which a later login knows it.
func (x *exchange) setCookies(s accounts.Session) {
	http.SetCookie(x.w, x.newCookie("", s.Cookie))
	browser := x.newCookie(browserCookie, s.Browser)
	browser.MaxAge = browserDays * 24 * 60 * 60
	http.SetCookie(x.w, browser)
}

func (x *exchange) newCookie(suffix, value string) *http.Cookie {
	return &http.Cookie{
		Name: x.console.cookieName() + suffix, Value: value, Path: "/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: x.console.secure(),
	}
}

func (x *exchange) logout() error {
	if err := x.endFormer(); err != nil {
		return err
	}
	gone := x.newCookie("", "")
	gone.MaxAge = -1
	http.SetCookie(x.w, gone)
	return x.redirect("/login")
}

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
	Sessions []accounts.Session
	This     string // the ID of this session
	Done     string
	Problem  string // with the password
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
		var err error
		if p.Sessions, err = x.console.Accounts.Sessions(x.who.Name); err != nil {
			return err
		}
		p.This = x.session.ID
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
