// Package doors runs gates with the doors beside the proxy: alone, reloaded, handed over and
// killed, while questions come in.
package doors
