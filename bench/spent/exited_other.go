// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package main

import "errors"

// waitExited fails: only Linux tells what a process has read.
func waitExited(int) error { return errors.ErrUnsupported }
