// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// transport sends what agents send. Unless the config says otherwise, the addresses are checked
// when the connection is made, after the name was looked up: no name can be pointed elsewhere in
// between, and redirects are checked too. A proxy would connect in its own way, so there is none.
func transport(cfg *Config) http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if cfg.AllowPrivate || !ok {
		return nil
	}
	t = t.Clone()
	t.Proxy = nil
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, ControlContext: publicOnly}
	t.DialContext = dialer.DialContext
	return t
}

// errPrivate refuses a connection.
var errPrivate = errors.New("the address is one of this machine or of a private network, which agents reach only " +
	"if the server is started with --allow-private")

// publicOnly refuses connections to addresses that the internet does not have.
func publicOnly(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !public(at.Addr()) {
		return errPrivate
	}
	return nil
}

// reserved are ranges that are not the internet's, besides those that package netip knows: of
// carriers, for documentation and tests, and those in which an address of IPv4 is hidden.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

func public(addr netip.Addr) bool {
	addr = addr.WithZone("").Unmap()
	return addr.IsGlobalUnicast() && !addr.IsPrivate() &&
		!slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(addr) })
}
