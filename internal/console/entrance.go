package console

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

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
			return x.redirect(p.path)
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
