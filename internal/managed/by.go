package managed

import (
	"os"
	"os/user"
	"strconv"
	"time"

	"spamgate/internal/listedit"
)

// How an edit came.
const (
	ThroughConsole = "console"
	ThroughAPI     = "api"
	ThroughCommand = "command"
)

// By is who makes an edit: an account of the console, or a user of this machine.
type By struct {
	Name, Role string // of an account
	Through    string // ThroughConsole ...

	UID            int // of a user; of an account, that of the gate; below 0: unknown
	User, SudoUser string
}

// Account returns an account of the console. Through is ThroughConsole or ThroughAPI.
func Account(name, role, through string) By {
	by := User(os.Geteuid(), "")
	by.Name, by.Role, by.Through = name, role, through
	return by
}

// User returns a user of this machine, who may have become that with sudo.
func User(uid int, sudoUser string) By {
	by := By{Through: ThroughCommand, UID: uid, SudoUser: sudoUser}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil && uid >= 0 {
		by.User = u.Username
	}
	return by
}

// Self returns the user of this process.
func Self() By { return User(os.Geteuid(), os.Getenv("SUDO_USER")) }

// Record returns the record of a change.
func (by *By) Record(command, list, file, why string) *listedit.Record {
	return &listedit.Record{
		Time: time.Now().UTC(), UID: by.UID, User: by.User, SudoUser: by.SudoUser,
		By: by.Name, Role: by.Role, Through: by.Through,
		Command: command, List: list, File: file, Why: why,
	}
}
