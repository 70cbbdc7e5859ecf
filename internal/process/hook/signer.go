// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const leastSecret = 16 // bytes; Standard Webhooks ask for 24

// Signer sets the headers of Standard Webhooks. The zero value signs nothing.
type Signer struct{ hook *standardwebhooks.Webhook }

// NewSigner returns a signer with a secret, which is base64 with or without the prefix whsec_. The error does not contain the
// secret.
func NewSigner(secret string) (Signer, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(secret), "whsec_"))
	if err != nil {
		return Signer{}, errors.New("the secret must be base64, with or without the prefix whsec_, as in Standard Webhooks")
	}
	if len(key) < leastSecret {
		return Signer{}, fmt.Errorf("the secret has %d bytes, which is too short: use 24 or more, such as from: openssl "+
			"rand -base64 24", len(key))
	}
	hook, err := standardwebhooks.NewWebhookRaw(key)
	return Signer{hook}, err
}

// SetHeaders sets the ID of a message, the present time and, if there is a secret, the signature of both and the body.
func (s Signer) SetHeaders(h http.Header, id string, body []byte) error {
	now := time.Now()
	h.Set(standardwebhooks.HeaderWebhookID, id)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	if s.hook == nil {
		return nil
	}
	sum, err := s.hook.Sign(id, now, body)
	if err != nil {
		return fmt.Errorf("sign the message: %w", err)
	}
	h.Set(standardwebhooks.HeaderWebhookSignature, sum)
	return nil
}

// CheckSecret returns an error if a text cannot be the secret of a webhook. The error does not
// contain the secret.
func CheckSecret(secret string) error {
	_, err := NewSigner(secret)
	return err
}
