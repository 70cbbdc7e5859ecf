// SPDX-License-Identifier: Apache-2.0

package channel_test

import (
	"bufio"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The tests trust the certificate of package httptest, which the first connection with TLS of a process reads.
func TestMain(m *testing.M) {
	web := httptest.NewTLSServer(nil)
	web.Close()
	dir, err := os.MkdirTemp("", "refrain-roots-")
	if err != nil {
		panic(err)
	}
	roots := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600); err != nil {
		panic(err)
	}
	_ = os.Setenv("SSL_CERT_FILE", roots)
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// encryption says how a mail server encrypts its connections.
type encryption int

const (
	plain encryption = iota
	startTLS
	fromTheStart
)

// mailServer returns the address of a mail server, and what the next client says to it.
func mailServer(t *testing.T, kind encryption, secure *tls.Config) (address string, conversation <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	all := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if kind == fromTheStart {
			conn = tls.Server(conn, secure)
		}
		text := ""
		defer func() { all <- text }()
		in, data := bufio.NewScanner(conn), false
		fmt.Fprint(conn, "220 mail\r\n")
		for in.Scan() {
			line := in.Text()
			text += line + "\n"
			_, encrypted := conn.(*tls.Conn)
			switch {
			case data && line == ".":
				data = false
				fmt.Fprint(conn, "250 ok\r\n")
			case data:
			case strings.HasPrefix(line, "EHLO") && kind == startTLS && !encrypted:
				fmt.Fprint(conn, "250-mail\r\n250-STARTTLS\r\n250 AUTH PLAIN\r\n")
			case strings.HasPrefix(line, "EHLO"):
				fmt.Fprint(conn, "250-mail\r\n250 AUTH PLAIN\r\n")
			case line == "STARTTLS":
				fmt.Fprint(conn, "220 go\r\n")
				conn = tls.Server(conn, secure)
				in = bufio.NewScanner(conn)
			case strings.HasPrefix(line, "AUTH"):
				fmt.Fprint(conn, "235 ok\r\n")
			case line == "DATA":
				data = true
				fmt.Fprint(conn, "354 go\r\n")
			case line == "QUIT":
				fmt.Fprint(conn, "221 bye\r\n")
				return
			default:
				fmt.Fprint(conn, "250 ok\r\n")
			}
		}
	}()
	return l.Addr().String(), all
}

// A mail has the ID of the notice, and no line of its own from the title. Over TLS the password comes after the handshake.
func TestMail(t *testing.T) {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	m := message
	m.Title, m.ID = "ended\r\nBcc: all@example.org", "r_1\r\nCc: all@example.org.7"
	for name, tt := range map[string]struct {
		scheme string
		kind   encryption
		want   string
	}{
		"plain":          {"smtp", plain, "EHLO localhost\nAUTH PLAIN"},
		"STARTTLS":       {"smtp", startTLS, "EHLO localhost\nSTARTTLS\nEHLO localhost\nAUTH PLAIN"},
		"from the start": {"smtps", fromTheStart, "EHLO localhost\nAUTH PLAIN"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.kind != plain && (runtime.GOOS == "darwin" || runtime.GOOS == "windows") {
				t.Skip("SSL_CERT_FILE names no certificates here")
			}
			address, conversation := mailServer(t, tt.kind, web.TLS)
			if err := parse(t, tt.scheme+"://me:pw@"+address+"/?from=a@example.org&to=b@example.org").Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			text := <-conversation
			for _, want := range []string{tt.want, "MAIL FROM:<a@example.org>", "RCPT TO:<b@example.org>", "\nSubject: ended Bcc: all@example.org\n",
				"\nMessage-ID: <r_1%0D%0ACc:%20all@example.org.7@example.org>\n", "@here *done*\n\nhttp://127.0.0.1:8080/runs/r_1\nr_1"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in the mail:\n%s", want, text)
				}
			}
		})
	}
}

// A server whose certificate is of another host gets neither a password nor a mail.
func TestMailToAnotherHost(t *testing.T) {
	web := httptest.NewTLSServer(nil) // whose certificate is for 127.0.0.1 and example.com
	defer web.Close()
	for _, kind := range []encryption{startTLS, fromTheStart} {
		address, conversation := mailServer(t, kind, web.TLS)
		_, port, _ := net.SplitHostPort(address)
		scheme := map[encryption]string{startTLS: "smtp", fromTheStart: "smtps"}[kind]
		err := parse(t, scheme+"://me:pw@localhost:"+port+"/?from=a@example.org&to=b@example.org").Send(t.Context(), message)
		if err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: got the error %v, want one about the certificate", scheme, err)
		}
		if text := <-conversation; strings.Contains(text, "AUTH") || strings.Contains(text, "MAIL") {
			t.Errorf("%s: the server was told\n%s", scheme, text)
		}
	}
}
