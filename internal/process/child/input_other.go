// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

import "os"

func nameless() (f *os.File, remove func(), err error) { return temporary() }
