// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// helperName is the first argument of a process that limits itself and becomes a command. Its second is the [Rules] as JSON, its
// third the path of the command, and then come the command's own arguments.
const helperName = "refrain-sandbox"

// leastVersion is the version of Landlock that also limits the truncation of files; with netVersion it limits TCP.
const (
	leastVersion = 3
	netVersion   = 4
)

func init() {
	if len(os.Args) > 3 && os.Args[0] == helperName {
		err := become(os.Args[1], os.Args[2], os.Args[3:])
		fmt.Fprintf(os.Stderr, "refrain: sandbox: %v\n", err)
		os.Exit(126)
	}
}

// Check returns the version of Landlock that the kernel has. It returns an [ErrUnsupported] if that cannot limit files.
func Check() (version int, err error) { return check(false) }

// CheckNetwork returns an [ErrUnsupported] if the kernel cannot limit files and the network.
func CheckNetwork() error {
	_, err := check(true)
	return err
}

func check(network bool) (version int, err error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno == unix.ENOSYS:
		return 0, fmt.Errorf("%w: its kernel has no Landlock, which Linux has from 5.13 on", ErrUnsupported)
	case errno == unix.EOPNOTSUPP:
		return 0, fmt.Errorf("%w: Landlock is off; add landlock to lsm= of the kernel's command line", ErrUnsupported)
	case errno != 0:
		return 0, fmt.Errorf("%w: landlock_create_ruleset: %w", ErrUnsupported, errno)
	case v < leastVersion:
		return int(v), fmt.Errorf("%w: its kernel has version %d of Landlock; files need version %d, which Linux has from 6.2 on", ErrUnsupported, v, leastVersion)
	case network && v < netVersion:
		return int(v), fmt.Errorf("%w: its kernel has version %d of Landlock; a network needs version %d, which Linux has from 6.7 on", ErrUnsupported, v, netVersion)
	}
	return int(v), nil
}

// Apply changes a command, which has not started, so that it runs under the rules. cmd.Path is the program that it will run. Without
// BestEffort it returns an [ErrUnsupported] if the kernel cannot enforce all of them. A command that cannot be limited
// after it was started ends with the exit code 126 and a reason on its standard error.
func (r Rules) Apply(cmd *exec.Cmd) error {
	if cmd.Err != nil {
		return nil // it will not start
	}
	path := cmd.Path
	if !filepath.IsAbs(path) {
		path = filepath.Join(cmd.Dir, path)
	}
	if r.Bubblewrap {
		return r.wrap(cmd, path)
	}
	if _, err := check(r.NoNetwork); err != nil && !r.BestEffort {
		return err
	}
	r.Read = slices.Concat(r.Read, programFiles(path))
	rules, err := json.Marshal(r)
	if err != nil {
		return err
	}
	cmd.Args = slices.Concat([]string{helperName, string(rules), cmd.Path}, cmd.Args)
	cmd.Path = "/proc/self/exe"
	return nil
}

// become limits this process and replaces it by the command. It returns only an error.
func become(rules, path string, args []string) error {
	var r Rules
	if err := json.Unmarshal([]byte(rules), &r); err != nil {
		return err
	}
	runtime.LockOSThread()
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := r.restrict(); err != nil {
		return err
	}
	if err := syscall.Exec(path, args, os.Environ()); err != nil {
		if errors.Is(err, syscall.EACCES) {
			return fmt.Errorf("%s: %w; if it is outside of the system and of your home folder's toolchains, name its folder in read", path, err)
		}
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// capabilities are what a command of root keeps: what it needs for files that it may write, and for children of other users.
var capabilities = []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID}

// dropCapabilities removes all other capabilities from what the command of root can get. With CAP_PERFMON, for example, it could read the
// environments of all processes. It concerns this thread, which becomes the command.
func dropCapabilities() error {
	if os.Geteuid() != 0 {
		return nil
	}
	for c := range uintptr(unix.CAP_LAST_CAP + 1) {
		if slices.Contains(capabilities, c) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // the kernel has fewer
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	return nil
}

// restrict limits this process.
func (r Rules) restrict() error {
	config := landlock.V11.BestEffort() // Apply has checked what is needed at least
	if !r.NoNetwork {
		config.HandledAccessNet = 0
	}
	var allow []landlock.Rule
	for _, path := range slices.Concat(r.Write, systemWrites) {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			allow = append(allow, landlock.RWDirs(path).WithRefer().WithIoctlDev().IgnoreIfMissing())
		} else if err == nil {
			allow = append(allow, landlock.RWFiles(path).WithIoctlDev().IgnoreIfMissing())
		}
	}
	for _, path := range slices.Concat(r.Read, Reads(os.Getenv), systemReads, settings()) {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			allow = append(allow, landlock.RODirs(path).IgnoreIfMissing())
		} else if err == nil {
			allow = append(allow, landlock.ROFiles(path).IgnoreIfMissing())
		}
	}
	if r.NoNetwork {
		for _, port := range r.Ports {
			allow = append(allow, landlock.ConnectTCP(port))
		}
	}
	return config.Restrict(allow...)
}
