// SPDX-License-Identifier: Apache-2.0

// Package child gives the programs that Refrain starts their standard input.
//
//	cmd := exec.CommandContext(ctx, "wc", "-c")
//	done, err := child.Input(cmd, strings.NewReader(text))
//	if err != nil {
//		return err
//	}
//	defer done()
//	return cmd.Run()
package child
