package site

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Ports are taken below those that Linux gives to outgoing connections (32768 and up): one of these could have any number of its own a moment
// later.
const firstPort, lastPort = 15000, 31999

// reserved is how long nobody else on this machine is given a port, so that whoever asked can start to listen.
const reserved = 5 * time.Minute

// FreePort picks a port on loopback on which nothing listens, and which no other landscape on this machine was given a moment ago.
func FreePort() (int, error) { return FreePortAt(Loopback) }

// FreePortAt picks a port of an address as FreePort does.
func FreePortAt(address string) (int, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("service-provider-velero-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	const attempts = 1000
	for range attempts {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		taken, err := reserve(filepath.Join(dir, strconv.Itoa(port)))
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		if !taken && listens(address, port) {
			return port, nil
		}
	}
	return 0, errors.New("find a free port: none of those tried is free")
}

// reserve says whether somebody else holds the port, and holds it otherwise.
func reserve(file string) (taken bool, err error) {
	if held, err := os.Stat(file); err == nil && time.Since(held.ModTime()) > reserved {
		// When two do this at the same time, the second may remove the first one's new reservation; that both then draw the same port is as
		// good as impossible.
		_ = os.Remove(file)
	}
	reservation, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, reservation.Close()
}

func listens(address string, port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
