// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrUnsupported is in the error of [Rules.Apply] and [Check] if the kernel cannot limit a program so.
var ErrUnsupported = errors.New("this machine cannot limit programs")

// Rules say what a program may do. It may always run and read the programs, libraries and settings of the system, and read the
// caches of modules and the toolchains in the person's home folder ([Reads]). It may do everything else that needs no file: a
// process ID that it sees, it may not signal unless the process is its own.
type Rules struct {
	// Write has the files and folders that the program may change, create and delete, with all below them. Paths are absolute. One that
	// does not exist is left out.
	Write []string `json:"write,omitempty"`
	// Read has further files and folders that it may read.
	Read []string `json:"read,omitempty"`
	// NoNetwork forbids TCP connections and listening, except connections to Ports of any machine. Kernels before Landlock's
	// version 10 do not limit UDP, and none limits Multipath TCP.
	NoNetwork bool     `json:"no_network,omitempty"`
	Ports     []uint16 `json:"ports,omitempty"`
	// BestEffort limits the program as far as the kernel can, also not at all, instead of failing.
	BestEffort bool `json:"best_effort,omitempty"`
	// Bubblewrap limits the program by the program bwrap in place of Landlock. What the program may not read does not exist for it, it sees
	// no other processes, and its children end with it. Ports have no effect.
	Bubblewrap bool `json:"-"`
}

// systemReads are read by all programs. Of /etc those files are left out that only root should read: see [settings].
var systemReads = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/snap", "/proc", "/sys", "/run/current-system",
	"/run/systemd/resolve", "/run/resolvconf", "/var/lib/ca-certificates", "/var/lib/alternatives",
}

// systemWrites are devices that keep nothing.
var systemWrites = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"}

// homeReads are below the home folder: what toolchains, package managers and git need, and no keys.
var homeReads = []string{
	"go/pkg/mod", "sdk", ".gitconfig", ".config/git", ".local/bin", ".local/lib", ".local/pipx", ".cargo/bin", ".cargo/registry", ".cargo/git",
	".rustup", ".m2/repository", ".nvm", ".volta/tools", ".volta/bin", ".fnm", ".pyenv", ".rbenv", ".sdkman/candidates", ".deno/bin", ".bun/bin", "bin",
}

// secretSettings are files and folders of /etc with secrets of the machine.
var secretSettings = []string{"shadow", "shadow-", "gshadow", "gshadow-", "sudoers", "sudoers.d", "ssh", "krb5.keytab", "security"}

// Reads returns the paths outside of the system that every program in a sandbox may read. They are in the home folder and where GOMODCACHE, GOPATH,
// GOROOT, GIT_CONFIG_GLOBAL and XDG_CONFIG_HOME of the environment say; those that do not exist are left out.
func Reads(getenv func(string) string) []string {
	var paths []string
	if home := getenv("HOME"); home != "" {
		for _, name := range homeReads {
			paths = append(paths, filepath.Join(home, name))
		}
	}
	paths = append(paths, getenv("GOMODCACHE"), getenv("GOROOT"), getenv("GIT_CONFIG_GLOBAL"))
	if config := getenv("XDG_CONFIG_HOME"); config != "" {
		paths = append(paths, filepath.Join(config, "git"))
	}
	for _, path := range filepath.SplitList(getenv("GOPATH")) {
		paths = append(paths, filepath.Join(path, "pkg", "mod"))
	}
	return slices.DeleteFunc(paths, func(path string) bool {
		_, err := os.Stat(path)
		return !filepath.IsAbs(path) || err != nil
	})
}

// settings returns the entries of /etc that programs may read.
func settings() []string {
	entries, _ := os.ReadDir("/etc")
	var paths []string
	for _, name := range []string{"certs", "openssl.cnf"} { // and not the private keys beside them
		paths = append(paths, filepath.Join("/etc/ssl", name))
	}
	for _, e := range entries {
		if !slices.Contains(secretSettings, e.Name()) && e.Name() != "ssl" {
			paths = append(paths, filepath.Join("/etc", e.Name()))
		}
	}
	return paths
}

// programFiles returns what has to be read to run a program: its file, or the packages of Node in which it lies. The folder around another
// program may be a home folder, so it has to be named.
func programFiles(path string) []string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return []string{path}
	}
	if before, _, ok := strings.Cut(real, "/node_modules/"); ok {
		return []string{filepath.Join(before, "node_modules")}
	}
	return []string{real}
}
