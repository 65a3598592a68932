package main

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-jose/go-jose/v4"
)

const keyBits = 2048

// loadKey reads the signing key, or makes one that its owner alone may read. The key outlives a restart, and with it
// every sign-in.
func loadKey(file string, random io.Reader) (*rsa.PrivateKey, error) {
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(file, random)
	}
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("key file %s has mode %o; want 600: others could sign tokens", file, mode)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("key file %s is no PEM of type PRIVATE KEY; remove it, and a new one is made", file)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w; remove it, and a new one is made", file, err)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok || key.N.BitLen() < keyBits {
		return nil, fmt.Errorf("key file %s holds no RSA key of %d bits or more; remove it, and a new one is made", file, keyBits)
	}
	return key, nil
}

// makeKey writes beside the file and renames, so that a start that is killed leaves no half a key.
func makeKey(file string, random io.Reader) (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(random, keyBits)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	t, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*") // 0600 by its own promise
	if err != nil {
		return nil, err
	}
	err = errors.Join(pem.Encode(t, &pem.Block{Type: "PRIVATE KEY", Bytes: der}), t.Close())
	if err == nil {
		err = os.Rename(t.Name(), file)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(t.Name()))
	}
	return key, nil
}

// public is the key as it is published; its id is its thumbprint (RFC 7638).
func public(key *rsa.PrivateKey) (jose.JSONWebKey, error) {
	k := jose.JSONWebKey{Key: &key.PublicKey, Algorithm: string(jose.RS256), Use: "sig"}
	sum, err := k.Thumbprint(crypto.SHA256)
	k.KeyID = base64.RawURLEncoding.EncodeToString(sum)
	return k, err
}
