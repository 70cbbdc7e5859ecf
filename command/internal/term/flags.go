// SPDX-License-Identifier: Apache-2.0

package term

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// Args returns an error unless there are as many arguments as the use line of the command says, such as check FILE... or
// answer RUN [ANSWER]. The error says how to write the command.
func Args(cmd *cobra.Command, args []string) error {
	least, most := 0, 0
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if most++; !strings.HasPrefix(word, "[") {
			least++
		}
		if strings.HasSuffix(word, "...") {
			most = math.MaxInt
		}
	}
	if len(args) >= least && len(args) <= most {
		return nil
	}
	hint := ""
	if len(args) < least && strings.Contains(cmd.Use, " RUN") {
		hint = "; last is the newest run, and refrain runs lists all"
	}
	return fmt.Errorf("%s given; write: %s%s", brief.Count(len(args), "argument"), cmd.UseLine(), hint)
}

// flagError adds to an error about a flag the name of a similar flag, or what the command's annotations say about the flag.
func flagError(cmd *cobra.Command, err error) error {
	name, isUnknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !isUnknown {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	}
	name, _, _ = strings.Cut(name, "=")
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if meant := cmd.Annotations[name]; meant != "" {
		return fmt.Errorf("%w; write %s", err, meant)
	}
	if near := suggest.Nearest(name, names); near != "" {
		return fmt.Errorf("%w (did you mean --%s?)", err, near)
	}
	for _, known := range names { // such as max for max-iterations, and budget-cost for budget
		if strings.HasPrefix(name, known+"-") || strings.HasPrefix(known, name+"-") {
			return fmt.Errorf("%w (did you mean --%s?)", err, known)
		}
	}
	if cmd.Flags().Lookup("set") != nil {
		return fmt.Errorf("%w; an input of the definition is given with --set %s=VALUE", err, name)
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// ValueError rewrites an error about a flag's value, so that it says which value to give. Other errors go to [flagError].
func ValueError(cmd *cobra.Command, err error) error {
	if missing, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		f := missing.GetFlag()
		value, usage := pflag.UnquoteUsage(f)
		return fmt.Errorf("--%s needs a value: --%s %s (%s); see %s --help", f.Name, f.Name, value, usage, cmd.CommandPath())
	}
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return flagError(cmd, err)
	}
	if f := wrong.GetFlag(); f.Value.Type() == "bool" {
		return fmt.Errorf("--%s takes no value, but has %q; write --%[1]s alone (%[3]s)", f.Name, wrong.GetValue(), f.Usage)
	}
	want := map[string]string{
		"uint": "a whole number, not below 0", "int": "a whole number", "int64": "a whole number",
		"float64": "a number", "duration": "a time such as 90s, 30m or 2h, or a number of seconds",
	}[wrong.GetFlag().Value.Type()]
	if want == "" {
		return flagError(cmd, err)
	}
	if errors.Is(err, strconv.ErrRange) {
		want += ", and a smaller one"
	}
	return fmt.Errorf("invalid argument %q for --%s: give %s", wrong.GetValue(), wrong.GetFlag().Name, want)
}

// verbs are the commands that other tools call by these names.
var verbs = map[string]string{
	"list": "runs", "ls": "runs", "ps": "runs", "history": "runs", "status": "show", "inspect": "show", "describe": "show",
	"logs": "events", "log": "events", "tail": "watch", "follow": "watch", "attach": "watch", "stop": "pause", "kill": "cancel",
	"abort": "cancel", "start": "run", "exec": "run", "continue": "resume", "restart": "resume", "retry": "resume",
	"delete": "rm", "remove": "rm", "new": "init", "create": "init", "lint": "check", "test": "rehearse", "chat": "console",
	"steer": "tell", "say": "tell", "web": "serve", "api_server": "serve",
}

// UnknownCommand returns an error about arguments that are not a command.
func UnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	near := cmp.Or(verbs[args[0]], suggest.Nearest(args[0], names))
	if slices.Contains(names, near) {
		return fmt.Errorf("unknown command %q (did you mean %s?)", args[0], near)
	}
	return fmt.Errorf("unknown command %q; see %s --help", args[0], cmd.CommandPath())
}

// DurationFlag adds a flag for a duration, in the forms that a definition accepts: 90s, 30m, or a number of seconds.
func DurationFlag(fl *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	f := fl.VarPF((*duration)(d), name, "", usage)
	if value == 0 {
		f.DefValue = "" // 0, which the help does not show
	}
}

// duration is the value of a duration flag.
type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }

// Type returns the name of the type, for the help of the flag and for ValueError.
func (d *duration) Type() string { return "duration" }

func (d *duration) Set(text string) error {
	got, err := time.ParseDuration(text)
	if s, notNumber := strconv.ParseFloat(text, 64); notNumber == nil {
		if !(math.Abs(s) <= math.MaxInt64/float64(time.Second)) {
			return strconv.ErrRange
		}
		got, err = time.Duration(s*float64(time.Second)), nil
	}
	if err != nil {
		return err
	}
	*d = duration(got)
	return nil
}
