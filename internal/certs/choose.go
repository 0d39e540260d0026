package certs

import "crypto/tls"

// GetCertificate returns the certificate for a client; it is for [tls.Config]. That is the
// first one that has the name which the client asks for and a kind of key and signature that
// the client knows. If none has the name, or the client asks for none, it is the first one of
// such a kind, and then the first one.
func (r *Reloader) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	first := r.pairs[0].current.Load()
	if len(r.pairs) == 1 {
		return first, nil
	}
	if c := r.supported(hello); c != nil {
		return c, nil
	}
	anyName := *hello
	anyName.ServerName = ""
	if c := r.supported(&anyName); c != nil {
		return c, nil
	}
	return first, nil // the handshake fails, and crypto/tls says why
}

// supported returns the first certificate that crypto/tls finds fit for a client, or nil.
func (r *Reloader) supported(hello *tls.ClientHelloInfo) *tls.Certificate {
	for _, p := range r.pairs {
		if c := p.current.Load(); hello.SupportsCertificate(c) == nil {
			return c
		}
	}
	return nil
}
