package pgtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// Authority makes certificates.
type Authority struct {
	PEM  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes one of its own, which nobody trusts.
func NewAuthority() (Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Authority{}, err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Almanac's tests"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return Authority{}, err
	}
	cert, err := x509.ParseCertificate(der)
	return Authority{PEM: encode("CERTIFICATE", der), cert: cert, key: key}, err
}

// Certificate makes one for a server of this name, with its key, both in PEM.
func (a Authority) Certificate(name string) (cert, key string, err error) {
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	t := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, &own.PublicKey, a.key)
	if err != nil {
		return "", "", err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", secret), err
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// certificates gives the server its own.
func (s *Server) certificates() error {
	authority, err := NewAuthority()
	if err != nil {
		return err
	}
	s.CA = authority.PEM
	cert, key, err := authority.Certificate("localhost")
	if err != nil {
		return err
	}
	return firstError(os.WriteFile(filepath.Join(s.folder, "server.pem"), []byte(cert), 0o600), os.WriteFile(filepath.Join(s.folder, "server.key"), []byte(key), 0o600))
}
