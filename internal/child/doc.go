// SPDX-License-Identifier: Apache-2.0

// Package child gives the programs that Refrain starts what they need, and no secrets: their standard
// input and their environment.
//
//	cmd := exec.CommandContext(ctx, "wc", "-c")
//	cmd.Env = child.Inheritance{Inherit: []string{"GOOGLE_API_KEY"}}.Environ()
//	done, err := child.Input(cmd, strings.NewReader(text))
//	if err != nil {
//		return "", err
//	}
//	defer done()
//	out, err := cmd.Output()
//	return child.Secrets(nil).StrikeWhole(string(out)), err
package child
