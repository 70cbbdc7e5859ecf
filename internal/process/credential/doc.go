// SPDX-License-Identifier: Apache-2.0

// Package credential sends the credentials of a request only to the server that they are for, and keeps them out of
// errors, logs and exports.
//
//	var secrets credential.Secrets
//	secrets.Request(req)
//	resp, err := client.Do(req)
//	if err != nil {
//		return secrets.Error(err)
//	}
//	return errors.New(secrets.Strike(words(resp)))
//
// Servers and proxies repeat requests in their errors, including the Authorization header. Only the client that sends
// the request knows which parts of such an error are secret.
package credential
