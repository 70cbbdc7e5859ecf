// SPDX-License-Identifier: Apache-2.0

package running

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// folderDefaults is the file with the flags of refrain loop in a folder.
var folderDefaults = filepath.Join(".refrain", "loop.yaml")

// mostDefaults is the size of the largest file with flags, in bytes.
const mostDefaults = 64 << 10

// argsKey is the key for what follows -- on a command line.
const argsKey = "args"

// withDefault lists the flags that a file may set.
var withDefault = []string{"acp", "agent-command", "allow", argsKey, "branch", "budget-cost", "cli", "conversation", "copies", "copy",
	"denied", "done", "idle-timeout", "inherit", "keep-notes", "max", "max-turns", "model", "no-progress", "notes", "notify", "notify-command", "on-limit", "on-task-failure",
	"permissions",
	"plan", "prompt", "protect", "retry", "review", "review-cli", "review-model", "sandbox", "setup", "squash", "timeout", "until"}

// ofProgram lists the flags that belong to the program of the coding agent: who chooses another one chooses them too.
var ofProgram = []string{"acp", "agent-command", argsKey, "cli", "inherit", "max-turns", "model"}

// ofBranch lists the flags that need a branch: who chooses no branch chooses none of them.
var ofBranch = []string{"copy", "keep-notes", "notes", "protect", "review", "setup", "squash"}

// readDefaults sets the flags that are not given from the files with flags: that of the folder, and that of the user. The one of the folder
// counts only if the user has written it, or accepted it, because it may have come with a cloned repository.
func (f *loopFlags) readDefaults(e *term.Env, fl *pflag.FlagSet, prompted bool) error {
	text, err := readFlags(folderDefaults)
	if err != nil {
		return err
	}
	if text != nil {
		flags, err := parseFlags(folderDefaults, text)
		if err != nil {
			return err
		}
		a, err := acceptedOf(folderDefaults, text, flags)
		if err != nil {
			return err
		}
		if k, err := trust.Open(e.Getenv); err != nil || !k.Accepts(a.hash) {
			what := "it"
			if len(a.scripts) > 0 {
				what = "it, or a file that its commands name (" + brief.Line(strings.Join(a.scripts, ", "), 200) + "),"
			}
			if len(a.checks) > 0 {
				what += " or a command of its plan,"
			}
			return fmt.Errorf("%s has flags for refrain loop, which start programs, and %s is new here or has changed: look at it, and accept it "+
				"with: refrain trust %[1]s; or leave it out with --no-defaults", folderDefaults, what)
		}
		if err := f.setDefaults(fl, folderDefaults, text, prompted); err != nil {
			return err
		}
	}
	own := userFile(e.Getenv, "loop.yaml")
	if own == "" {
		return nil
	}
	if text, err = readFlags(own); err != nil || text == nil {
		return err
	}
	return f.setDefaults(fl, own, text, prompted)
}

// userFile returns a file with settings of the user for all folders; "" if the user has no folder for it.
func userFile(getenv func(string) string, name string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "refrain", name)
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "refrain", name)
	}
	return ""
}

// readFlags reads a file with flags. The text is nil if there is none.
func readFlags(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > mostDefaults) {
		err = fmt.Errorf("%s is no file of text with at most %d bytes", name, mostDefaults)
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(name)
	if text == nil && err == nil {
		text = []byte{}
	}
	return text, err
}

// withCommand lists the flags of a file whose values are commands, or words of one.
var withCommand = []string{"acp", "agent-command", "allow", argsKey, "notify-command", "setup", "until"}

// consent is what a person accepts of a file with flags.
type consent struct {
	hash    string   // what [trust.Keeper] knows it by
	root    string   // the folder whose flags the file has
	scripts []string // the files that its commands name
	checks  []string // the scripts of the plan that it names
}

// acceptedOf returns what a person accepts of a file with flags: its text, the folder whose flags it has, the commands of its plan, and the
// files that all commands name, because the same text starts other programs in another folder.
func acceptedOf(name string, text []byte, flags []fileFlag) (a consent, err error) {
	if a.root, err = filepath.Abs(name); err == nil {
		a.root, err = filepath.EvalSymlinks(filepath.Dir(filepath.Dir(a.root)))
	}
	if err != nil {
		return a, err
	}
	var commands [][]string
	for _, flag := range flags {
		var words []string
		for _, v := range flag.values {
			words = append(words, v.Value)
			if flag.name == "plan" {
				a.checks = append(a.checks, checksOf(a.root, v.Value)...)
			}
		}
		if slices.Contains(withCommand, flag.name) {
			commands = append(commands, words)
		}
	}
	for _, script := range a.checks {
		commands = append(commands, []string{script})
	}
	whole := fmt.Sprintf("refrain loop %q %q", a.root, text)
	if len(a.checks) > 0 {
		whole += fmt.Sprintf(" %q", a.checks)
	}
	a.hash, a.scripts = program.HashCommands(whole, a.root, commands)
	return a, nil
}

// checksOf returns the scripts of a plan that find out whether its tasks are done. A plan that cannot be read has none: the loop refuses it.
func checksOf(root, name string) []string {
	if !filepath.IsAbs(name) {
		name = filepath.Join(root, name)
	}
	p, err := readPlan(name)
	if err != nil {
		return nil
	}
	return p.Checks()
}

// fileFlag is a flag of a file with flags, with its values.
type fileFlag struct {
	name   string
	values []*yaml.Node // scalars
}

// parseFlags parses a file with flags. The error names the file and the line.
func parseFlags(name string, text []byte) ([]fileFlag, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	top := doc.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s:%d: write flags as keys, such as max: 20", name, top.Line)
	}
	var all []fileFlag
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if !slices.Contains(withDefault, key.Value) {
			err := fmt.Errorf("%s:%d: %q is no flag that a file can set", name, key.Line, key.Value)
			if near := suggest.Nearest(key.Value, withDefault); near != "" {
				err = fmt.Errorf("%w (did you mean %s?)", err, near)
			}
			return nil, err
		}
		values := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			values = value.Content
		}
		for _, v := range values {
			if v.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("%s:%d: %s needs a value, or a list of values", name, v.Line, key.Value)
			}
		}
		all = append(all, fileFlag{key.Value, values})
	}
	return all, nil
}

// setDefaults sets the flags of a file that are not set yet.
func (f *loopFlags) setDefaults(fl *pflag.FlagSet, name string, text []byte, prompted bool) error {
	flags, err := parseFlags(name, text)
	if err != nil {
		return err
	}
	given := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return n == argsKey && len(f.args) > 0 || n != argsKey && fl.Changed(n) })
	}
	var without []string
	for _, name := range withDefault {
		if given(name) {
			without = append(without, name)
		}
	}
	if given("cli", "acp") {
		without = append(without, ofProgram...)
	}
	if prompted || given("prompt", "plan") {
		without = append(without, "prompt", "plan")
	}
	if given("plan") {
		without = append(without, "done")
	}
	if given("review-only") {
		without = append(without, "branch", "done", "plan", "prompt", "review")
	}
	if given("permissions") {
		without = append(without, "allow")
	}
	if given("allow") {
		without = append(without, "permissions")
	}
	if given("agent-command") {
		without = append(without, "acp")
	}
	if f.run.detach {
		without = append(without, "notify-command")
	}
	if given("cli") && (&taskagent.CLI{Program: f.cli}).PricedAs() != "" {
		without = append(without, "budget-cost")
	}
	planned := given("plan") || slices.ContainsFunc(flags, func(flag fileFlag) bool {
		return flag.name == "plan" && !slices.Contains(without, "plan")
	})
	if given("branch") && f.branch == "" && !planned { // a plan has a branch of its own
		without = append(without, ofBranch...)
	}
	for _, flag := range flags {
		if slices.Contains(without, flag.name) {
			continue
		}
		for _, v := range flag.values {
			if flag.name == argsKey {
				f.args = append(f.args, v.Value)
			} else if err := fl.Set(flag.name, v.Value); err != nil {
				return fmt.Errorf("%s:%d: %w", name, v.Line, err)
			}
			if f.origins == nil {
				f.origins = make(map[string]string)
			}
			f.origins[flag.name] = name
		}
	}
	return nil
}

// flagError is an error about flags, which [loopFlags.traced] can trace.
type flagError struct {
	error

	flags []string // such as --until
}

func (e *flagError) Unwrap() error { return errors.Unwrap(e.error) }

var flagName = lazyregexp.New(`--[a-z][-a-z]*`)

// wrong returns an error about the flags that its format names. A value of an argument names none.
func wrong(format string, args ...any) error {
	return &flagError{fmt.Errorf(format, args...), flagName().FindAllString(format, -1)}
}

// traced adds to an error about flags which files have set them.
func (f *loopFlags) traced(err error) error {
	about, _ := errors.AsType[*flagError](err)
	field := "" // in an error about the definition
	if p, ok := errors.AsType[*definition.Problem](err); ok {
		field = p.Field()
	}
	var from []string
	for _, name := range slices.Sorted(maps.Keys(f.origins)) {
		if about != nil && slices.Contains(about.flags, "--"+name) || field == strings.ReplaceAll(name, "-", "_") {
			from = append(from, "--"+name+" is from "+f.origins[name])
		}
	}
	if from == nil {
		return err
	}
	return fmt.Errorf("%w (%s; leave it out with --no-defaults)", err, strings.Join(from, ", "))
}

// isDefaults reports whether a name is that of a file with flags of refrain loop.
func isDefaults(getenv func(string) string, name string) bool {
	abs, err := filepath.Abs(name)
	return err == nil && (strings.HasSuffix(abs, string(filepath.Separator)+folderDefaults) || abs == userFile(getenv, "loop.yaml"))
}

// writeDefaults writes the flags that are given to a new file with flags, and accepts it.
func (f *loopFlags) writeDefaults(e *term.Env, fl *pflag.FlagSet) error {
	n := &yaml.Node{Kind: yaml.MappingNode}
	put := func(name string, values ...string) {
		var key, value yaml.Node
		key.SetString(name)
		if len(values) == 1 && name != argsKey {
			value.SetString(values[0])
		} else {
			_ = value.Encode(values) // texts can always be encoded
		}
		n.Content = append(n.Content, &key, &value)
	}
	fl.Visit(func(flag *pflag.Flag) {
		switch list, ok := flag.Value.(pflag.SliceValue); {
		case !slices.Contains(withDefault, flag.Name):
		case ok:
			put(flag.Name, list.GetSlice()...)
		default:
			put(flag.Name, flag.Value.String())
		}
	})
	if len(f.args) > 0 {
		put(argsKey, f.args...)
	}
	text, err := yaml.Marshal(n)
	if err != nil {
		return err
	}
	k, err := trust.Open(e.Getenv)
	if err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(f.write), 0o700); err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	file, err := os.OpenFile(f.write, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err == nil {
		var flags []fileFlag
		var a consent
		if flags, err = parseFlags(f.write, text); err == nil {
			a, err = acceptedOf(f.write, text, flags)
		}
		if err == nil {
			err = k.Accept(a.hash)
		}
	}
	if err != nil {
		return fmt.Errorf("--write: %w", err)
	}
	fmt.Fprintf(e.Stderr, "Later loops begin with the flags in %s.\n", f.write)
	return nil
}

// showDefaults shows the flags of a file to a person who is to accept it, and returns its hash. It shows what [parseFlags] has
// found, whole and quoted, because a text can look different from what it means.
func showDefaults(e *term.Env, name string) (string, error) {
	text, err := readFlags(name)
	if err == nil && text == nil {
		err = &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	if err != nil {
		return "", err
	}
	flags, err := parseFlags(name, text)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(e.Stdout, "%s gives refrain loop these flags:\n", brief.Clean(name))
	for _, flag := range flags {
		for _, v := range flag.values {
			fmt.Fprintf(e.Stdout, "  %s: %q\n", flag.name, v.Value)
		}
	}
	a, err := acceptedOf(name, text, flags)
	if err != nil {
		return "", err
	}
	for _, script := range a.checks {
		fmt.Fprintf(e.Stdout, "  commands of the plan: %q\n", strings.TrimRight(script, "\n"))
	}
	showScripts(e, a.root, a.scripts)
	return a.hash, nil
}
