// SPDX-License-Identifier: Apache-2.0

// Package child sets the standard input and the environment of the programs that Refrain starts, and withholds
// secrets from them.
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
