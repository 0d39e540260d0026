module spamgate/tools/adguard

go 1.26.0

require github.com/AdguardTeam/urlfilter v0.5.0

require (
	github.com/AdguardTeam/golibs v0.1.3 // indirect
	github.com/asaskevich/govalidator v0.0.0-20180720115003-f9ffefc3facf // indirect
	github.com/joomcode/errorx v0.8.0 // indirect
	golang.org/x/net v0.0.0-20190313220215-9f648a60d977 // indirect
)
