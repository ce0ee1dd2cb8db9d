// Package pki makes the certificates and keys of one API server. Every server of the landscape has a certificate
// authority and a token key of its own, so that a credential of one is worth nothing at another.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	keyFile     = "ca.key"
	certFile    = "ca.crt"
	tokenPublic = "token.pub"
	tokenKey    = "token.key"
	lifetime    = 365 * 24 * time.Hour
)

// Authority issues certificates and keeps everything it made in one directory.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// Create makes a new authority in dir, with the name its certificate carries.
func Create(dir, name string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the certificate directory: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of authority %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(lifetime),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back the certificate of authority %s: %w", name, err)
	}
	a := &Authority{dir: dir, cert: cert, key: key}
	if err := a.write(certFile, keyFile, der, key); err != nil {
		return nil, err
	}
	return a, nil
}

// Open reads an authority that Create made.
func Open(dir string) (*Authority, error) {
	certPEM, err := os.ReadFile(filepath.Join(dir, certFile))
	if err != nil {
		return nil, fmt.Errorf("open the authority: %w", err)
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("open the authority: %w", err)
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("the authority in %s is damaged", dir)
	}
	cert, err := x509.ParseCertificate(certBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse the authority in %s: %w", dir, err)
	}
	key, err := x509.ParsePKCS8PrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse the key of the authority in %s: %w", dir, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key of the authority cannot sign")
	}
	return &Authority{dir: dir, cert: cert, key: signer}, nil
}

// Pair is a certificate and its key, as files.
type Pair struct{ Cert, Key string }

// CA is the file with the authority's certificate.
func (a *Authority) CA() string { return filepath.Join(a.dir, certFile) }

// Server issues a certificate for a server that listens on loopback, and on the addresses given.
func (a *Authority) Server(name string, addresses ...string) (Pair, error) {
	ips := make([]net.IP, 0, len(addresses)+2)
	ips = append(ips, net.IPv4(127, 0, 0, 1), net.IPv6loopback)
	for _, address := range addresses {
		ips = append(ips, net.ParseIP(address))
	}
	return a.issue(name, &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: ips,
		// etcd's own gateway calls etcd with the server certificate.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// Client issues a certificate that authenticates a user who is a member of groups.
func (a *Authority) Client(user string, groups ...string) (Pair, error) {
	return a.issue("client-"+user, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *Authority) issue(file string, template *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the key of %s: %w", file, err)
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Pair{}, fmt.Errorf("make a serial number for %s: %w", file, err)
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(lifetime)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("issue the certificate of %s: %w", file, err)
	}
	pair := Pair{Cert: filepath.Join(a.dir, file+".crt"), Key: filepath.Join(a.dir, file+".key")}
	return pair, a.write(file+".crt", file+".key", der, key)
}

// TokenKeys makes the key pair with which a server signs and verifies ServiceAccount tokens.
func (a *Authority) TokenKeys() (public, private string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("make the token key: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", "", fmt.Errorf("encode the token key: %w", err)
	}
	if err := a.writePEM(tokenPublic, "PUBLIC KEY", der); err != nil {
		return "", "", err
	}
	return filepath.Join(a.dir, tokenPublic), filepath.Join(a.dir, tokenKey), a.writeKey(tokenKey, key)
}

func (a *Authority) write(certFile, keyFile string, cert []byte, key any) error {
	if err := a.writePEM(certFile, "CERTIFICATE", cert); err != nil {
		return err
	}
	return a.writeKey(keyFile, key)
}

func (a *Authority) writeKey(file string, key any) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode %s: %w", file, err)
	}
	return a.writePEM(file, "PRIVATE KEY", der)
}

func (a *Authority) writePEM(file, kind string, der []byte) error {
	content := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(filepath.Join(a.dir, file), content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
