// SPDX-License-Identifier: Apache-2.0

package channel

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"net/smtp"
	"net/url"
	"strings"
	"time"
)

// mailServer checks the address of a mail server: smtp://USER:PASSWORD@HOST:587/?from=ADDRESS&to=ADDRESS, or smtps:// for TLS from
// the first byte.
func (c *Channel) mailServer() error {
	c.service = mail
	if c.url.Hostname() == "" {
		return errors.New("the address of the mail server has no host")
	}
	if _, _, err := c.mailbox(); err != nil {
		return errors.New("the address of the mail server says from whom and to whom; write smtp://USER:PASSWORD@HOST:587/?from=ADDRESS&to=ADDRESS")
	}
	return nil
}

// mailbox returns the sender and the receivers.
func (c *Channel) mailbox() (from *netmail.Address, to []*netmail.Address, err error) {
	q := c.url.Query()
	if from, err = netmail.ParseAddress(cmp.Or(q.Get("from"), q.Get("fromaddress"))); err != nil {
		return nil, nil, err
	}
	to, err = netmail.ParseAddressList(cmp.Or(q.Get("to"), q.Get("toaddresses")))
	return from, to, err
}

// mail sends a message. The connection has TLS, unless the server is on this machine.
func (c *Channel) mail(ctx context.Context, m Message) error {
	host, port := c.url.Hostname(), cmp.Or(c.url.Port(), map[string]string{"smtp": "587", "smtps": "465"}[c.url.Scheme])
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	secure := &tls.Config{ServerName: host}
	if c.url.Scheme == "smtps" {
		conn = tls.Client(conn, secure)
	}
	s, err := smtp.NewClient(conn, host)
	if err != nil {
		return err
	}
	defer s.Close()
	ip := net.ParseIP(host)
	switch offered, _ := s.Extension("STARTTLS"); {
	case c.url.Scheme == "smtps":
	case offered:
		if err := s.StartTLS(secure); err != nil {
			return err
		}
	case host != "localhost" && !ip.IsLoopback():
		return errors.New("the mail server offers no TLS")
	}
	if user := c.url.User; user != nil {
		password, _ := user.Password()
		if err := s.Auth(smtp.PlainAuth("", user.Username(), password, host)); err != nil {
			return err
		}
	}
	return c.letter(s, m)
}

// letter sends the text of a message to the server.
func (c *Channel) letter(s *smtp.Client, m Message) error {
	from, to, err := c.mailbox()
	if err == nil {
		err = s.Mail(from.Address)
	}
	if err != nil {
		return err
	}
	var receivers []string
	for _, one := range to {
		receivers = append(receivers, one.String())
		if err := s.Rcpt(one.Address); err != nil {
			return err
		}
	}
	w, err := s.Data()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	_, host, _ := strings.Cut(from.Address, "@")
	for _, line := range [][2]string{{"From", from.String()}, {"To", strings.Join(receivers, ", ")},
		{"Subject", mime.QEncoding.Encode("utf-8", strings.Join(strings.Fields(m.Title), " "))}, {"Date", time.Now().Format(time.RFC1123Z)},
		{"Message-ID", "<" + url.PathEscape(m.ID) + "@" + host + ">"}, {"MIME-Version", "1.0"}, {"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"}} {
		fmt.Fprintf(&b, "%s: %s\r\n", line[0], line[1])
	}
	b.WriteString("\r\n")
	body := quotedprintable.NewWriter(&b)
	if _, err = body.Write([]byte((&Message{Title: m.Text, Link: m.Link, ID: m.ID}).text(20_000))); err == nil {
		err = body.Close()
	}
	if err == nil {
		_, err = w.Write(b.Bytes())
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return err
	}
	_ = s.Quit() // the server has the message
	return nil
}
