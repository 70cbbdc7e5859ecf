// SPDX-License-Identifier: Apache-2.0

// Package sandbox limits what the programs that Refrain starts may do with files and with the network, by Landlock or by
// bubblewrap.
//
//	cmd := exec.CommandContext(ctx, "go", "test", "./...")
//	cmd.Dir = tree
//	if err := (sandbox.Rules{Write: []string{tree}}).Apply(cmd); err != nil {
//		return err
//	}
//	out, err := cmd.CombinedOutput()
//
// The command is not started directly. This program is started once more instead, under another name; before anything else
// happens in that process, it limits itself and becomes the command. So a program that imports the package needs no
// code of its own, and nothing has to be installed.
package sandbox
