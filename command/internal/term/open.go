// SPDX-License-Identifier: Apache-2.0

package term

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// OpenOrSay opens an address in the browser of this machine. If that fails, it prints an error; the address itself is already
// printed.
func OpenOrSay(e *Env, where string) {
	cmd := browser(e.Getenv("BROWSER"), where)
	say := func(err error) {
		if err != nil {
			PrintError(e.Stderr, fmt.Errorf("--open: %s: %w; open the address yourself, or name a browser in BROWSER",
				filepath.Base(cmd.Path), err))
		}
	}
	if err := cmd.Start(); err != nil {
		say(err)
		return
	}
	go func() { say(cmd.Wait()) }() // the browser outlives the command
}

// browser returns the command that opens an address. chosen is the value of BROWSER: a list of commands to try, separated like
// a PATH. In a command %s stands for the address; without %s, the address is the last argument.
func browser(chosen, where string) *exec.Cmd {
	for one := range strings.SplitSeq(chosen, string(os.PathListSeparator)) {
		args := strings.Fields(one)
		if len(args) == 0 {
			continue
		}
		if _, err := exec.LookPath(args[0]); err != nil {
			continue
		}
		if !strings.Contains(one, "%s") {
			args = append(args, "%s")
		}
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "%s", where)
		}
		return exec.Command(args[0], args[1:]...)
	}
	switch runtime.GOOS {
	case "darwin":
		return exec.Command("open", where)
	case "windows":
		return exec.Command(filepath.Join(cmp.Or(os.Getenv("SYSTEMROOT"), `C:\Windows`), "System32", "rundll32.exe"),
			"url.dll,FileProtocolHandler", where)
	}
	return exec.Command("xdg-open", where)
}
