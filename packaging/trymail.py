#!/usr/bin/env python3
"""Sends mail for packaging/try, and compares what the clients were told with what arrived.

    trymail.py send HOST:PORT FROM TO        sends one message and prints the last reply
    trymail.py load HOST:PORT MIN STOP FILE  sends at least MIN messages from eight clients,
                                             until the file STOP exists; writes a ledger to FILE
    trymail.py compare FILE MAILDIR          each accepted message arrived once, none was refused
"""

import collections
import os
import smtplib
import sys
import threading
import time

CLIENTS = 8


def attempt(addr, sender, recipient, text):
    """Sends a message over a connection of its own and returns the last reply."""
    host, port = addr.rsplit(":", 1)
    try:
        with smtplib.SMTP(host, int(port), local_hostname="client.example.com", timeout=60) as client:
            client.ehlo()
            for command in (lambda: client.mail(sender), lambda: client.rcpt(recipient), lambda: client.data(text)):
                code, reply = command()
                if code >= 400:
                    break
            return "%d %s" % (code, reply.decode("ascii", "replace").replace("\n", " "))
    except smtplib.SMTPResponseException as e:
        return "%d %s" % (e.smtp_code, e.smtp_error)
    except (OSError, smtplib.SMTPException) as e:
        return "no reply: %r" % e


def message(sender, ident):
    return "From: %s\r\nSubject: load\r\nX-Ident: %s\r\n\r\n%s\r\n" % (sender, ident, "text " * 200)


def send(addr, sender, recipient):
    print(attempt(addr, sender, recipient, message(sender, "one")))


def load(addr, least, stop, ledger):
    """Writes a line for each attempt: its number and the reply."""
    lock, numbers, last = threading.Lock(), iter(range(1, 1 << 30)), [0]
    with open(ledger, "w", buffering=1) as out:

        def client():
            while True:
                with lock:
                    if last[0] >= int(least) and os.path.exists(stop):
                        return
                    last[0] = n = next(numbers)
                reply = attempt(addr, "alice@example.org", "you@example.net", message("alice@example.org", "load-%d" % n))
                with lock:
                    out.write("load-%d %s\n" % (n, reply))

        threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


def arrived(maildir):
    """Returns how often each message of the load is in a Maildir."""
    found = collections.Counter()
    for entry in os.scandir(os.path.join(maildir, "new")):
        with open(entry.path, errors="replace") as mail:
            for line in mail:
                if line.startswith("X-Ident: load-"):
                    found[line.split()[1]] += 1
                    break
    return found


def compare(ledger, maildir):
    replies = dict(line.rstrip("\n").split(" ", 1) for line in open(ledger))
    accepted = {ident for ident, reply in replies.items() if reply.startswith("250 ")}
    end = time.monotonic() + 120  # the server delivers after its reply
    while True:
        found = arrived(maildir)
        if accepted <= set(found) or time.monotonic() > end:
            break
        time.sleep(0.2)
    refused = {ident: reply for ident, reply in replies.items() if ident not in accepted}
    lost = sorted(accepted - set(found))
    twice = sorted(ident for ident, n in found.items() if n > 1)
    print("%d messages: %d accepted, %d refused, %d lost, %d twice"
          % (len(replies), len(accepted), len(refused), len(lost), len(twice)))
    for ident, reply in list(refused.items())[:5]:
        print("refused: %s: %s" % (ident, reply))
    for ident in lost[:5] + twice[:5]:
        print("lost or twice:", ident)
    sys.exit(1 if refused or lost or twice or not accepted else 0)


if __name__ == "__main__":
    command = {"send": send, "load": load, "compare": compare}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if command is None:
        sys.exit(__doc__)
    command(*sys.argv[2:])
