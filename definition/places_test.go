// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition"
)

// lines are command lines with a text in them, X: wrappers, interpreters under all their names, options that run programs or read
// files, addresses that are files, and programs that nobody suspects.
const lines = `
choom -n 0 -- sh -c X
choom -n X -- true
tini -- sh -c X
dumb-init sh -c X
gosu nobody X
su-exec nobody X
capsh -- -c X
capsh --shell=X --
sg users X
sg users -c X
newgrp X
ip netns exec a X
ip netns exec a sh -c X
systemd-inhibit X
systemd-run X
systemd-run --user sh -c X
env X true
env -S X
env -u A X
nice X
nice -n 1 X
ionice -c 3 X
chrt -b 0 X
nohup X
setsid X
stdbuf -o0 X
timeout 3 X
timeout X true
flock lock X
flock lock -c X
unshare -r X
nsenter -t 1 X
setpriv --no-new-privs X
runuser -u nobody -- X
sudo X
sudo -u X true
doas X
su -c X
su X
pkexec X
chroot / X
prlimit --nofile=10 X
taskset 1 X
numactl -N 0 X
script -c X out
script -qec X /dev/null
xargs X
parallel X
watch X
entr X
strace X
ltrace X
gdb -ex X
perf record X
valgrind X
time X
linux64 X
setarch X true
bwrap --bind / / X
firejail X
proot X
fakeroot X
faketime now X
xvfb-run X
dbus-run-session X
ssh-agent X
catatonic X
sh -c X
sh X
sh -x X
sh -c true sh X
bash -c X
bash --rcfile X -i
bash --init-file X
bash-static -c X
busybox sh -c X
busybox.static sh -c X
busybox X
toybox X
dash -c X
zsh -c X
ksh93 -c X
mksh -c X
yash -c X
fish -c X
fish --init-command=X
tcsh -c X
rc -c X
es -c X
elvish -c X
nu -c X
xonsh -c X
pwsh -c X
python3 -c X
python3 X
python3 -m X
python3 -X X
python3.11 -c X
python3.13t -c X
python3-dbg -c X
pypy3 -c X
perl -e X
perl -i -pe X
perl -MX -e 1
perl -X
perl5.36-x86_64-linux-gnu -e X
ruby -e X
ruby3.1 -rX -e 1
node -e X
node -p X
node --require X
node --import=X
nodejs -e X
deno eval X
bun -e X
php -r X
php8.2 -d X
lua5.4 -e X
luajit -e X
tclsh X
expect -c X
Rscript -e X
julia -e X
guile -c X
emacs --eval X
emacs -l X
vim -c X
vim.tiny -c X
vim +X
nvim --cmd X
ed X
ex X
view X
nano X
less X
less +X f
more +X f
man -P X ls
awk X
awk -f X
gawk -e X
mawk X
sed X
sed -e X
sed -n X f
sed -i X f
jq X
jq -f X
yq X
bc X
dc -e X
m4 X
gnuplot -e X
tar cf o.tar X f
tar xf X
tar --to-command=X -xf f
tar --checkpoint-action=X --checkpoint=1 -cf o f
tar -I X -cf o f
tar --use-compress-program=X -cf o f
tar --rsh-command=X -cf h:o f
split X f
split --filter=X f
git grep X MIT
git grep -OX MIT
git grep --open-files-in-pager=X MIT
git clone X
git fetch X
git -c X status
git diff X
git log X
git rebase --exec X
git bisect run X
git archive --remote=X HEAD
git submodule foreach X
git difftool -x X
hg --config X log
svn checkout X
curl -s X
curl -o X http://localhost
curl -K X
wget X
wget --use-askpass=X http://localhost
wget -O X http://localhost
rsync X a b
rsync -e X a h:b
rsync --rsh=X a h:b
scp X a
scp -S X a h:b
sftp -b X h
ssh X
ssh h X
ssh -o X h
ssh -oProxyCommand=X h
sort X f
sort --compress-program=X f
sort -o X f
zip X f
zip o.zip f -TT X
unzip X
7z X
find . X
find . -name X
find . -exec X ;
find . -fprintf X a
fd -x X
rg --pre X a
rg X a
grep X f
grep -f X f
ag --pager X a
docker run X
docker exec box X
docker build X
podman run X
kubectl exec X
nix-shell --run X
make X
make -f X
make SHELL=X
cmake -P X
ninja -t X
go run X
go test -exec X
go build -toolexec=X
go vet -vettool=X
cargo run -- X
npm run X
npx X
pip install X
gcc -wrapper X f.c
gcc @X
ld -plugin X
openssl enc X
gpg --exec-path X
ffmpeg -i X
convert X out.png
gs X
pdflatex X
mysql -e X
psql -c X
sqlite3 db X
redis-cli X
mail X
at X
crontab X
cp X a
mv a X
rm X
rm -f X
rmdir X
ln -s X a
chmod X a
install X a
dd if=X
dd of=X
tee X
cat X
head X
cut X f
printf X
echo X
echo --x=X
echo a/X.txt
date X
touch X
test X
xdg-open X
kill X
mount X
/lib64/ld-linux-x86-64.so.2 X
./own-tool X
./own-tool --flag=X
`

// settings are variables that programs take for a setting, and names of an author's own, which some program may.
const settings = `
TAR_OPTIONS RSYNC_RSH RSYNC_PROXY GOAUTH GOFLAGS GOPROXY GH_PAGER GH_EDITOR GIT_PAGER GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_CONFIG_COUNT FZF_DEFAULT_COMMAND
FZF_DEFAULT_OPTS http_proxy https_proxy ALL_PROXY no_proxy LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV ENV PATH IFS PS4 PROMPT_COMMAND
PYTHONPATH PYTHONSTARTUP PYTHONINSPECT PERL5OPT PERL5LIB RUBYOPT NODE_OPTIONS JAVA_TOOL_OPTIONS LESSOPEN LESS PAGER MANPAGER EDITOR VISUAL BROWSER
SUDO_ASKPASS SSH_ASKPASS ZIPOPT UNZIP GZIP XZ_OPT GREP_OPTIONS RIPGREP_CONFIG_PATH CURL_HOME WGETRC SYSTEMD_PAGER JQ_COLORS MAKEFLAGS CFLAGS CC
TMPDIR HOME XDG_CONFIG_HOME GPG_TTY DOCKER_HOST KUBECONFIG AWS_ENDPOINT_URL CARGO_BUILD_RUSTC_WRAPPER NIX_PATH PGSERVICEFILE VIMINIT TERMINFO GCONV_PATH
TASK LEVEL input_x INPUT XINPUT_X
`

// D4: a text reaches no program as an argument or a setting, unless its shape is declared or the step is unsafe. The refusal has
// the lines to write instead.
func TestTextInNoArgumentAndNoSetting(t *testing.T) {
	var all []string
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		args, err := json.Marshal(strings.Fields(strings.TrimSpace(line)))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, "command: "+strings.ReplaceAll(string(args), "X", "{{x}}"))
	}
	for name := range strings.FieldsSeq(settings) {
		all = append(all, fmt.Sprintf("command: [tool]\nenv: {%s: \"{{x}}\"}", name))
	}
	if len(all) < 200 {
		t.Fatalf("only %d commands", len(all))
	}
	code := 0
	for _, text := range all {
		text = "name: a\n" + text + "\n"
		refused := func(text string) error {
			_, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
			return err
		}
		for what, head := range map[string]string{
			"input": "inputs: {x: hi}\n", "a path": "inputs: {x: {type: path}}\n", "state": "state: {x: hi}\n", "list": "state: {x: [1]}\n", "map": "state: {x: {a: 1}}\n",
			"string": "inputs: {x: {type: string}}\n",
		} {
			err := refused(text + head)
			shape, ok := errors.AsType[*taskagent.ShapeError](err)
			if !ok || shape.Name != "x" {
				t.Errorf("%s: %s is accepted: %v", text, what, err)
				continue
			}
			if problems, _ := errors.AsType[definition.Problems](err); !strings.Contains(problems[0].Hint, `env: {INPUT_X: "{{x}}"} or stdin: "{{x}}"`) {
				t.Errorf("%s: the hint is %q", text, problems[0].Hint)
			}
		}
		for _, head := range []string{
			"inputs: {x: hi}\nunsafe: true\n", "inputs: {x: {choices: [a, b]}}\n", "inputs: {x: 1}\n", "state: {x: true}\n",
		} {
			if err := refused(text + head); err != nil {
				t.Errorf("%s%s: %v", text, head, err)
			}
		}
		for _, head := range []string{"inputs: {x: hi}\nshapes: {x: {pattern: '[a-z]+'}}\n", "inputs: {x: {type: file}}\n"} {
			if err := refused(text + head); err != nil {
				shape, ok := errors.AsType[*taskagent.ShapeError](err)
				if !ok {
					t.Errorf("%s%s: %v", text, head, err)
				} else if shape.Code {
					code++
				}
			}
		}
	}
	if code < 200 { // two shapes for each of some 150 commands and variables
		t.Errorf("%d are known to be code", code)
	}
}

// D4: a pattern that lets code through is listed by check, and the hints of a refusal offer nothing that a program can run.
func TestLoosePatternsAreListed(t *testing.T) {
	for _, pattern := range []string{".+", "[^-].*", "(?s).*", "[a-z;]+"} {
		d := parse(t, "name: a\ncommand: [tool, '{{x}}']\nenv: {LEVEL: '{{x}}', INPUT_X: '{{x}}'}\nstate: {x: hi}\nshapes: {x: {pattern: '"+pattern+"'}}\n")
		var found []string
		for _, p := range d.Notes() {
			if p.Code == definition.CodeUnsafe {
				found = append(found, p.Message)
			}
		}
		if len(found) != 2 || !strings.Contains(found[0], "command[1]: the pattern "+pattern+" of {{x}} lets through") || !strings.Contains(found[0], "semicolon") ||
			!strings.Contains(found[1], "env.LEVEL: the pattern") {
			t.Errorf("%s: %q", pattern, found)
		}
		text := "name: a\ncommand: [sh, -c, '{{x}}']\nstate: {x: hi}\nshapes: {x: {pattern: '" + pattern + "'}}\n"
		_, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
		problems, ok := errors.AsType[definition.Problems](err)
		if !ok || !strings.Contains(problems[0].Message, "stands where a program reads code") ||
			strings.Contains(problems[0].Hint, "pattern") || strings.Contains(problems[0].Hint, "file") {
			t.Errorf("%s in code: %v", pattern, err)
		}
	}
	for _, p := range parse(t, "name: a\ncommand: [tool, '{{x}}']\nstate: {x: hi}\nshapes: {x: {pattern: '[a-z]+-[0-9]+'}}\n").Notes() {
		if p.Code == definition.CodeUnsafe {
			t.Errorf("a narrow pattern: %s", p.Message)
		}
	}
}

// D4: an answer of a model may stand in a command as far as its schema declares what it is, and so may the field of any value.
func TestShapesOfAnswersAndFields(t *testing.T) {
	const head = `name: a
max_iterations: 1
model: scripted/x
sub_agents:
  - name: ask
    instructions: hi
    can_exit_loop: false
    output_key: r
    output_schema:
      type: object
      properties:
        n: {type: integer}
        mode: {enum: [a, b]}
        word: {type: string, pattern: "[a-z]+"}
        path: {type: file}
        maybe: {type: [file, "null"]}
        free: {type: string}
        deep: {type: object, properties: {yes: {type: boolean}}}
        list: {type: array, items: {type: integer}}
  - {name: note, set: {made: "'x'"}}
  - name: use
    command: [tool, "{{r.VALUE}}"]
`
	for value, want := range map[string]bool{
		"n": true, "mode": true, "word": true, "path": true, "maybe": true, "deep.yes": true, "free": false, "list": false, "deep": false, "n.x": false, "other": false,
	} {
		_, err := definition.Parse("x.yaml", []byte(strings.Replace(head, "VALUE", value, 1)), definition.Options{})
		if (err == nil) != want {
			t.Errorf("r.%s: %v", value, err)
		}
		_, err = definition.Parse("x.yaml", []byte(strings.Replace(head, "{{r.VALUE}}", "{{prev.r."+value+"}}", 1)), definition.Options{})
		if (err == nil) != want {
			t.Errorf("prev.r.%s: %v", value, err)
		}
	}
	free := strings.Replace(head, "VALUE", "free", 1)
	for shapes, want := range map[string]string{
		"r.free: {type: file}":       "",
		"r.free: {choices: [a, 1]}":  "",
		"r.free: {type: string}":     "is text of any content",
		"r.free: {type: folder}":     "",
		"r: {type: file}":            "{{r.free}} is text of any content",
		"r.free: {}":                 "shapes.r.free declares nothing",
		"r.free: {pattern: '['}":     "shapes.r.free.pattern is not a regular expression",
		"r.free: {type: path}":       "shapes.r.free.type must be string, int, number, bool, file or folder",
		"r.free: {choices: []}":      "shapes.r.free.choices is an empty list",
		"rr.free: {type: file}":      `shapes names the key "rr", which no agent writes`,
		"r.free: {patern: '[a-z]'}":  `unknown field "patern" of a shape`,
		"user_input: {choices: [a]}": "{{r.free}} is text of any content",
	} {
		_, err := definition.Parse("x.yaml", []byte("shapes: {"+shapes+"}\n"+free), definition.Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", shapes, err, want)
		}
	}
}

// D4: an input that has choices, a pattern or the type file is refused before the run, by its default and by a value.
func TestInputsWithShapes(t *testing.T) {
	for in, want := range map[string]string{
		"{choices: [a, b], default: c}":              `the default of x must be one of a, b, got "c"`,
		"{type: int, choices: [1, 2]}":               "",
		"{type: file, default: ../x}":                "the default of x must be a path inside the root",
		"{pattern: '[a-z]+', default: A}":            "the default of x must be text that matches [a-z]+",
		"{choices: [a, a]}":                          "names \"a\" twice",
		"{type: file, default: data/x.csv}":          "",
		"{type: path, pattern: '.*', default: /tmp}": "",
	} {
		_, err := definition.Parse("x.yaml", []byte("name: a\ntext: '{{x}}'\ninputs: {x: "+in+"}\n"), definition.Options{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
	d := parse(t, "name: a\ntext: '{{x}} {{y}}'\ninputs: {x: {choices: [a, b]}, y: {type: file, default: y}}\n")
	for _, tt := range []struct{ x, y, want string }{
		{"a", "d/y", ""}, {"c", "y", `input "x": must be one of a, b, got "c"`}, {"b", "/y", `input "y": must be a path inside the root, got "/y"`},
	} {
		_, err := d.InitialState(map[string]string{"x": tt.x, "y": tt.y})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v: %v", tt, err)
		}
	}
}
