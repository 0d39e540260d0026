// Package door has what the doors beside the proxy share: the policy service and the milter
// only translate between their protocol and a [Message], which judges, logs and counts as the
// proxy does. A [Server] bounds and drains their connections.
package door
