// Package policyservice proves that Postfix decides by the policy service as the gate decides
// at its listeners: at each recipient and in each state of SMTP, over TCP and a socket in a
// chroot, behind postscreen, and when the gate is gone.
package policyservice
