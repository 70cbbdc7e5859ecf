// SPDX-License-Identifier: Apache-2.0

// Package procgroup ends commands together with all processes that they have started.
//
//	cmd := exec.CommandContext(ctx, "make", "-j")
//	procgroup.Lead(cmd)
//	if err := cmd.Start(); err != nil {
//		return err
//	}
//	err := cmd.Wait()
//	procgroup.Kill(cmd.Process)
//
// Without process groups, as on Windows, only the command itself ends.
package procgroup
