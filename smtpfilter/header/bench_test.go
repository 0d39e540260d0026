package header

import (
	"strings"
	"testing"
)

// typical is a header section as a list's mail has it: 20 fields, 1.5 KiB.
var typical = []byte(strings.ReplaceAll(`Return-Path: <bounce-17@lists.example>
Received: from mx1.example.net (mx1.example.net [192.0.2.7])
	by mail.example.org (Postfix) with ESMTPS id 4XyZ12abc
	for <reader@example.org>; Tue, 6 May 2025 10:11:12 +0000 (UTC)
Received: from app3.lists.example (app3.lists.example [198.51.100.3])
	by mx1.example.net (Postfix) with ESMTP id 4XyZ11abc;
	Tue, 6 May 2025 10:11:11 +0000 (UTC)
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=lists.example;
	s=mail2025; t=1746526271; h=from:to:subject:date:message-id;
	bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=;
	b=Zm9yIGEgYmVuY2htYXJrIGFueSB0ZXh0IG9mIHRoZSByaWdodCBsZW5ndGggd2lsbCBkbywg
	c28gaGVyZSBpdCBpcyBhbmQgaXQgZ29lcyBvbiBmb3IgYSB3aGlsZSBsaWtlIHRoaXMgb25l
Authentication-Results: mail.example.org; dkim=pass header.d=lists.example
Date: Tue, 6 May 2025 10:11:10 +0000
From: "Ann Example (via the list)" <ann@lists.example>
Sender: The list <bounces@lists.example>
Reply-To: =?utf-8?q?Ann_=C3=89xample?= <ann@people.example>, list@lists.example
To: list@lists.example
Cc: "Bob, of example" <bob@example.com>
Message-ID: <20250506101110.4711@lists.example>
In-Reply-To: <20250505090807.4242@people.example>
References: <20250505090807.4242@people.example>
Subject: Re: [list] a typical message
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary="=_0a1b2c3d"
List-Id: The list <list.lists.example>
List-Unsubscribe: <mailto:leave@lists.example>, <https://lists.example/leave>
List-Post: <mailto:list@lists.example>
`, "\n", "\r\n"))

func BenchmarkSenders(b *testing.B) {
	run := func(name string, section []byte) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(section)))
			for b.Loop() {
				Senders(section, asked)
			}
		})
	}
	run("typical", typical)
	run("scanned", []byte(strings.ReplaceAll(string(typical), "From: ", "From: (c) ")))
	run("20000addresses", []byte("From: "+strings.Repeat("a@b.example, ", 20_000)))
	run("hostile256KiB", []byte("From: "+strings.Repeat(`"=?a?q?a=40b?=" `, 16<<10)))
}

// BenchmarkReaders compares the two readers of a clean value.
func BenchmarkReaders(b *testing.B) {
	const value = `"Ann Example (via the list)" <ann@lists.example>`
	b.Run("go-message", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			(&budget{left: 1 << 30}).parse(value)
		}
	})
	b.Run("scan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			scanned(value)
		}
	})
}
