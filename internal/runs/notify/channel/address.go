// SPDX-License-Identifier: Apache-2.0

package channel

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/refrain-dev/refrain/internal/process/hook"
)

// The services.
const (
	slack      = "slack"
	discord    = "discord"
	telegram   = "telegram"
	teams      = "teams"
	ntfy       = "ntfy"
	mattermost = "mattermost"
	mail       = "mail"
	webhook    = "webhook"
)

// hosts are the services that an address of HTTP tells by its host, or by the end of its host.
var hosts = map[string]string{
	"hooks.slack.com": slack, "discord.com": discord, "discordapp.com": discord, "api.telegram.org": telegram, "ntfy.sh": ntfy,
	".logic.azure.com": teams, ".api.powerplatform.com": teams,
}

// Parse reads an address: the address of a webhook as the service shows it, the same with the service in front, such as
// mattermost+https://…, or an address in the format of shoutrrr, such as telegram://TOKEN@telegram?chats=ID. The error does not
// contain the address.
func Parse(address string) (*Channel, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Scheme == "" {
		return nil, errors.New("it is not an address; an address begins with https://, or with a service such as slack+https://, " +
			"telegram:// or smtp://")
	}
	c := &Channel{url: u}
	c.secrets.Address(u)
	for _, secret := range []string{u.Fragment, u.User.String()} {
		c.secrets.Add(secret)
	}
	scheme, transport, plain := strings.Cut(u.Scheme, "+")
	switch {
	case scheme == "smtp" || scheme == "smtps":
		return c, c.mailServer()
	case plain && (transport == "http" || transport == "https"):
		u.Scheme, c.service = transport, strings.ReplaceAll(scheme, "generic", webhook)
	case scheme == "http" || scheme == "https":
		c.service = serviceAt(u.Hostname())
	default:
		if err := c.shoutrrr(scheme); err != nil {
			return nil, err
		}
		c.secrets.Address(u) // a service may repeat the translated address
	}
	if u.Host == "" {
		return nil, errors.New("its address has no host")
	}
	return c, c.settle()
}

func serviceAt(host string) string {
	for end, service := range hosts {
		if host == end || end[0] == '.' && strings.HasSuffix(host, end) {
			return service
		}
	}
	return webhook
}

// shoutrrr translates an address of the format of shoutrrr into that of the service.
func (c *Channel) shoutrrr(service string) error {
	u, user := c.url, c.url.User.String()
	switch c.service = service; service {
	case slack: // slack://hook:A-B-C@webhook
		token, _ := u.User.Password()
		*u = url.URL{Scheme: "https", Host: "hooks.slack.com", Path: "/services/" + strings.ReplaceAll(token, "-", "/")}
	case discord: // discord://TOKEN@ID
		*u = url.URL{Scheme: "https", Host: "discord.com", Path: "/api/webhooks/" + u.Host + "/" + user}
	case telegram: // telegram://TOKEN@telegram?chats=ID
		*u = url.URL{Scheme: "https", Host: "api.telegram.org", Path: "/bot" + user, RawQuery: u.RawQuery}
	case mattermost: // mattermost://HOST/TOKEN
		token, _, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
		*u = url.URL{Scheme: "https", Host: u.Host, Path: "/hooks/" + token}
	case ntfy, "generic": // ntfy://HOST/TOPIC
		u.Scheme, c.service = "https", strings.ReplaceAll(service, "generic", webhook)
	default:
		return fmt.Errorf("its address begins with %s://, which is no service; it can be https, slack, discord, telegram, ntfy, mattermost, "+
			"smtp or smtps, or https behind a service, such as teams+https", service)
	}
	return nil
}

// settle takes from the address what the service wants elsewhere.
func (c *Channel) settle() error {
	u := c.url
	switch c.service {
	case slack, discord, teams, mattermost:
	case telegram:
		if c.chat = u.Query().Get("chats"); c.chat == "" || strings.Contains(c.chat, ",") {
			return errors.New("the address of Telegram names one chat; write telegram://TOKEN@telegram?chats=ID")
		}
		u.Path, u.RawQuery = strings.TrimSuffix(u.Path, "/sendMessage")+"/sendMessage", ""
	case ntfy:
		if c.chat = strings.Trim(u.Path, "/"); c.chat == "" || strings.Contains(c.chat, "/") {
			return errors.New("the address of ntfy ends in a topic; write ntfy://ntfy.sh/TOPIC")
		}
		c.url = origin(u)
	case webhook:
		if u.Fragment == "" {
			return nil
		}
		var err error
		if c.signer, err = hook.NewSigner(u.Fragment); err != nil {
			return fmt.Errorf("after # it has the secret that signs its messages: %w", err)
		}
		u.Fragment, u.RawFragment = "", ""
	default:
		return fmt.Errorf("there is no service %q; it can be slack, discord, telegram, teams, ntfy, mattermost or webhook", c.service)
	}
	return nil
}
