// Package alike proves that every door decides alike: one corpus of envelopes and headers
// goes through the proxy, the policy service, the milter and DNS of one gate.
package alike
