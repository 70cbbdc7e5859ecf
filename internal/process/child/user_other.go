// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

import "errors"

// BecomeUser refuses to change the user, because only containers of Linux need that.
func BecomeUser(number string) error {
	if number == "" {
		return nil
	}
	return errors.New("REFRAIN_USER: only Linux can do that; unset the variable")
}
