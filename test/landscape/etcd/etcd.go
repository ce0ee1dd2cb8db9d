// Package etcd runs the one etcd of a landscape, in which every API server has a prefix of its own.
package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/openmcp-project/service-provider-velero/test/landscape/pki"
	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// Start runs etcd and waits until it answers.
func Start(ctx context.Context, s *site.Site) error {
	authority, err := pki.Create(s.Path("etcd", "pki"), "etcd")
	if err != nil {
		return err
	}
	server, err := authority.Server("server")
	if err != nil {
		return err
	}
	if _, err := authority.Client("apiserver"); err != nil {
		return err
	}
	peer, err := site.FreePort()
	if err != nil {
		return err
	}
	record, err := s.Start(process.Spec{
		Name: "etcd", Program: "etcd", Stage: site.StageEtcd, Kill: true,
		Args: flags(s, authority, server, fmt.Sprintf("http://127.0.0.1:%d", peer)),
	})
	if err != nil {
		return err
	}
	return record.Await(ctx, time.Minute, func(ctx context.Context) error {
		return call(ctx, s, http.MethodGet, "/health", nil)
	})
}

func flags(s *site.Site, authority *pki.Authority, server pki.Pair, peer string) []string {
	return []string{
		"--name=landscape", "--data-dir=" + s.Path("etcd", "data"), "--log-level=warn",
		"--listen-client-urls=" + URL(s), "--advertise-client-urls=" + URL(s),
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=landscape=" + peer,
		"--cert-file=" + server.Cert, "--key-file=" + server.Key,
		"--trusted-ca-file=" + authority.CA(), "--client-cert-auth",
		// The data does not outlive the landscape, so nobody needs it to survive a power cut.
		"--unsafe-no-fsync",
	}
}

// URL is where etcd listens.
func URL(s *site.Site) string { return fmt.Sprintf("https://127.0.0.1:%d", s.EtcdPort) }

// ClientFlags are the flags with which an API server reaches etcd.
func ClientFlags(s *site.Site) []string {
	return []string{
		"--etcd-servers=" + URL(s),
		"--etcd-cafile=" + s.Path("etcd", "pki", "ca.crt"),
		"--etcd-certfile=" + s.Path("etcd", "pki", "client-apiserver.crt"),
		"--etcd-keyfile=" + s.Path("etcd", "pki", "client-apiserver.key"),
	}
}

// Erase removes all keys below a prefix. The API server that owns it must have ended.
func Erase(ctx context.Context, s *site.Site, prefix string) error {
	end := []byte(prefix)
	end[len(end)-1]++
	body, err := json.Marshal(map[string][]byte{"key": []byte(prefix), "range_end": end})
	if err != nil {
		return fmt.Errorf("erase %s: %w", prefix, err)
	}
	if err := call(ctx, s, http.MethodPost, "/v3/kv/deleterange", body); err != nil {
		return fmt.Errorf("erase %s: %w", prefix, err)
	}
	return nil
}

// call speaks to etcd's JSON gateway, which spares the landscape an etcd client of its own.
func call(ctx context.Context, s *site.Site, method, path string, body []byte) error {
	transport, err := transport(s)
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, method, URL(s)+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		answer, err := io.ReadAll(response.Body)
		return errors.Join(fmt.Errorf("etcd answers %s: %s", response.Status, answer), err)
	}
	return nil
}

func transport(s *site.Site) (*http.Transport, error) {
	ca, err := os.ReadFile(s.Path("etcd", "pki", "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read etcd's authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client, err := tls.LoadX509KeyPair(s.Path("etcd", "pki", "client-apiserver.crt"), s.Path("etcd", "pki", "client-apiserver.key"))
	if err != nil {
		return nil, fmt.Errorf("read the client certificate for etcd: %w", err)
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{client}}}, nil
}
