package console

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"spamgate/internal/accounts"
)

var entranceRoutes = []route{
	{"GET", "/login", anyone, (*exchange).loginPage},
	{"POST", "/login", anyone, (*exchange).login},
	{"POST", "/logout", entered, (*exchange).logout},
	{"GET", "/{$}", entered, (*exchange).home},
	{"GET", "/static/{file}", anyone, (*exchange).static},
}

// home sends everyone to the first page that they may see.
func (x *exchange) home() error {
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
	SSO               bool
}

func (x *exchange) loginPage() error {
	if x.authenticate() {
		return x.redirect(localPath(x.query("to")))
	}
	return x.render("login", view{Title: "Log in", Data: loginForm{To: localPath(x.query("to"))}})
}

func (x *exchange) login() error {
	f := loginForm{To: localPath(x.form("to")), Name: x.form("name")}
	session, err := x.console.Accounts.Login(x.r.Context(), f.Name, x.r.PostFormValue("password"), x.clientAddress())
	var limited *accounts.LimitedError
	switch {
	case err == nil:
		x.setCookie(session.Cookie)
		x.console.Logger.Info("console login", "user", f.Name, "client", x.clientAddress())
		return x.redirect(f.To)
	case errors.As(err, &limited):
		wait := max(limited.Wait.Round(time.Second), time.Second)
		x.w.Header().Set("Retry-After", fmt.Sprint(int(wait.Seconds())))
		f.Problem, x.status = fmt.Sprintf("Too many attempts. Try again in %v.", wait), http.StatusTooManyRequests
	case errors.Is(err, accounts.ErrBusy):
		f.Problem, x.status = "Many people are logging in. Try again in some seconds.", http.StatusServiceUnavailable
	case errors.Is(err, accounts.ErrWrong):
		f.Problem, x.status = "The name or the password is wrong.", http.StatusUnauthorized
	default:
		return err
	}
	x.console.Logger.Warn("console login failed", "user", f.Name, "client", x.clientAddress(), "error", err)
	return x.render("login", view{Title: "Log in", Data: f})
}

// setCookie gives the browser the session's cookie, which it keeps until it is closed.
func (x *exchange) setCookie(value string) {
	http.SetCookie(x.w, &http.Cookie{
		Name: x.console.cookieName(), Value: value, Path: "/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: x.console.secure(),
	})
}

func (x *exchange) logout() error {
	if x.cookie != "" {
		if err := x.console.Accounts.End(x.cookie); err != nil {
			return err
		}
	}
	http.SetCookie(x.w, &http.Cookie{
		Name: x.console.cookieName(), Path: "/", MaxAge: -1,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: x.console.secure(),
	})
	return x.redirect("/login")
}
