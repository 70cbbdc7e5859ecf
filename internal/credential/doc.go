// SPDX-License-Identifier: Apache-2.0

// Package credential keeps what a request proves itself with where it belongs:
// it goes to the server that it was written for, and into no error, log or export.
//
//	var secrets credential.Secrets
//	secrets.Request(req)
//	resp, err := client.Do(req)
//	if err != nil {
//		return secrets.Error(err)
//	}
//	return errors.New(secrets.Strike(words(resp)))
//
// Servers and proxies repeat requests in their errors, with the Authorization
// header in them, and whoever sends the request is the only one who still knows
// which of those words are secret.
package credential
