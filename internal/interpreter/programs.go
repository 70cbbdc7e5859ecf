// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"path"
	"strings"

	"github.com/refrain-dev/refrain/internal/lazyregexp"
)

// kind is what a program does with its arguments and its standard input.
type kind int

const (
	plain    kind = iota // it reads them as data, as far as anybody knows
	shell                // runs the text after -c, a file, or its standard input
	language             // runs a file, a text after an option, or its standard input
	python               // a language whose options end with -c TEXT
	filter               // runs a text among its arguments over its standard input
	console              // runs its standard input and its arguments, whatever they are
	launcher             // runs a program that is named among its arguments
)

// programs are those that are more than plain, by their bare names.
var programs = named(map[kind]string{
	shell: "sh bash rbash dash ash zsh ksh rksh mksh pdksh oksh yash fish csh tcsh",
	language: "perl ruby jruby node nodejs php lua luajit tclsh wish rscript groovy julia elixir escript crystal " +
		"osascript qjs d8",
	python: "python pypy",
	filter: "awk gawk mawk nawk original-awk sed gsed jq gojq yq xsltproc",
	console: "cmd powershell pwsh wscript cscript mshta rundll32 regsvr32 msiexec forfiles wsl elvish xonsh nu irb " +
		"ghc ghci runghc runhaskell ocaml guile racket sbcl clisp scala jshell erl iex swipl gprolog r octave " +
		"matlab maxima gp gnuplot bc dc m4 ed ex vi vim nvim view emacs nano gdb lldb expect sqlite3 psql " +
		"mysql mariadb duckdb mongosh redis-cli ftp sftp lftp telnet at batch crontab mail mailx mutt deno " +
		"bun ts-node tsx gcl ipython pdb make gmake nmake ninja rake just cmake ant mvn gradle sbt bazel tex " +
		"latex pdftex pdflatex xelatex lualatex gs ghostscript",
	launcher: "env find xargs parallel busybox toybox sudo doas su runuser setpriv pkexec chroot unshare nsenter " +
		"script flock nohup nice ionice chrt timeout gtimeout time stdbuf unbuffer setsid setarch linux32 " +
		"linux64 watch entr taskset numactl prlimit cgexec systemd-run start-stop-daemon chpst softlimit " +
		"envdir runit s6-setuidgid daemonize fakeroot proot bwrap firejail xvfb-run dbus-run-session " +
		"dbus-launch ssh-agent gpg-agent docker podman nerdctl kubectl oc lxc lxd-exec crictl runc ssh mosh rsh " +
		"slogin autossh sshpass ansible screen tmux dtach nix nix-shell guix strace ltrace valgrind perf " +
		"socat ncat nc netcat go cargo npm npx yarn pnpm bunx uv uvx pipx poetry pipenv conda bundle dotnet " +
		"java exec command cmdow winpty aws-vault direnv dotenv vault-exec foreman overmind hyperfine rlwrap " +
		"multitime",
})

func named(lists map[kind]string) map[string]kind {
	all := make(map[string]kind)
	for k, names := range lists {
		for name := range strings.FieldsSeq(names) {
			all[name] = k
		}
	}
	return all
}

// version is what may follow the bare name of a program, as in python3.12.
var version = lazyregexp.New(`[-.]?[0-9][0-9.]*[a-z]?(\.so[.0-9]*)?$`)

// loader is a name of the dynamic loader, which starts the program in its arguments:
// ld-linux-x86-64.so.2.
var loader = lazyregexp.New(`^ld[-_.0-9a-z]*\.so`)

// kindOf is what a program is, by the last part of its path.
func kindOf(program string) (name string, k kind) {
	name = path.Base(strings.ToLower(strings.ReplaceAll(program, `\`, "/")))
	for _, end := range []string{".exe", ".com", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, end)
	}
	if k, known := programs[name]; known {
		return name, k
	}
	if loader().MatchString(name) {
		return name, launcher
	}
	return name, programs[version().ReplaceAllString(name, "")]
}

// Variable reports whether a variable of the environment may hold any value: no
// shell, loader or interpreter takes it for code, or for where its code is.
func Variable(name string) bool {
	upper := strings.ToUpper(name)
	for _, begin := range variablePrefixes {
		if strings.HasPrefix(upper, begin) {
			return false
		}
	}
	return !variableNames[upper]
}

var (
	variablePrefixes = []string{
		"LD_", "DYLD_", "_RLD", "BASH_", "GIT_", "PYTHON", "PERL5", "PERLLIB", "PERL_", "RUBYOPT", "RUBYLIB",
		"RUBYSHELL", "NODE_", "NPM_CONFIG_", "LUA_", "PHPRC", "PHP_INI", "JAVA_", "JDK_", "_JAVA", "CGO_",
		"CARGO_", "RUSTC", "RUSTFLAGS", "RUSTUP_", "PIP_", "UV_", "GEM_", "BUNDLE_", "COMPOSER_", "MAVEN_",
		"GRADLE_", "DOTNET_", "CORECLR_", "COR_", "R_", "JULIA_", "ERL_", "ELIXIR_", "TCL_", "TCLLIB", "GCC_",
		"CMAKE_", "GLIBC_", "GCONV_", "MALLOC_", "DOCKER_", "KUBECONFIG", "SSH_", "SUDO_", "XDG_CONFIG",
		"XDG_DATA", "LESSOPEN", "LESSCLOSE", "PSQL_", "PSQLRC", "PGSERVICE", "VIMINIT", "VIMRUNTIME",
	}
	variableNames = setOf("GOFLAGS GOROOT GOPATH GOENV GOPROXY GOTOOLDIR GOTOOLCHAIN GOBIN GOWORK GOMODCACHE MAKEFLAGS " +
		"MAKEFILES MFLAGS GNUMAKEFLAGS VIM PATH PATHEXT ENV SHELL SHELLOPTS BASHOPTS IFS CDPATH HOME ZDOTDIR " +
		"FPATH KSH_ENV FCEDIT HISTFILE PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND EDITOR VISUAL PAGER MANPAGER " +
		"BROWSER LESS LESSKEY COMSPEC SYSTEMROOT WINDIR PSMODULEPATH USERPROFILE APPDATA LOCALAPPDATA CC CXX " +
		"CPP LD AR AS CFLAGS CXXFLAGS LDFLAGS CLASSPATH IPYTHONDIR JUPYTER_PATH ANT_OPTS SBT_OPTS MAVEN_OPTS " +
		"OPENSSL_CONF OPENSSL_ENGINES INPUTRC TERMINFO TERMINFO_DIRS TERMCAP LOCPATH NLSPATH HOSTALIASES " +
		"RES_OPTIONS TMUX_TMPDIR SCREENRC AWKPATH AWKLIBPATH SQLITE_HISTORY EXINIT DSH_CONFIG")
)

func setOf(names string) map[string]bool {
	set := make(map[string]bool)
	for name := range strings.FieldsSeq(names) {
		set[name] = true
	}
	return set
}
