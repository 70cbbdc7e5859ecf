// SPDX-License-Identifier: Apache-2.0

// Package universal chooses a launcher by the first argument, and gives the other verbs to the command.
//
//	l := universal.NewLauncher(console.NewLauncher(), web.NewLauncher(api.NewLauncher()))
package universal

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/refrain-dev/refrain/cmd/launcher"
	"github.com/refrain-dev/refrain/cmd/launcher/internal/door"
)

type universal struct{ subs []launcher.SubLauncher }

// NewLauncher returns a launcher that runs the one of subs whose keyword is the first argument. Without an argument,
// or if the first one is a flag, it runs the first of subs. Package command handles all other arguments: program show
// last, program resume last. Execute then returns nil on success, and otherwise ends the process with the command's
// exit code.
func NewLauncher(subs ...launcher.SubLauncher) launcher.Launcher { return &universal{subs} }

// ErrorOnUnparsedArgs returns an error if there are unread arguments, and otherwise nil.
func ErrorOnUnparsedArgs(args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unknown arguments: %s", strings.Join(args, " "))
}

func (u *universal) Execute(ctx context.Context, config *launcher.Config, args []string) error {
	seen := make(map[string]bool)
	for _, sub := range u.subs {
		if seen[sub.Keyword()] {
			return fmt.Errorf("two launchers have the keyword %q", sub.Keyword())
		}
		seen[sub.Keyword()] = true
	}
	sub, err := u.chosen(args)
	switch {
	case err != nil:
		return err
	case sub == nil && isHelp(args[0]):
		fmt.Fprint(os.Stdout, u.CommandLineSyntax(), "\nThe verbs below work too.\n\n")
		return door.Verb(ctx, config, args)
	case sub == nil:
		return door.Verb(ctx, config, args)
	case len(args) > 0 && args[0] == sub.Keyword():
		args = args[1:]
	}
	rest, err := sub.Parse(args)
	if err == nil {
		err = ErrorOnUnparsedArgs(rest)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, err = fmt.Fprintf(os.Stdout, "%s: %s\n%s", sub.Keyword(), sub.SimpleDescription(), sub.CommandLineSyntax())
		return err
	case err != nil:
		return fmt.Errorf("%s: %w", sub.Keyword(), err)
	}
	return sub.Run(ctx, config)
}

// chosen returns the launcher that arguments choose; nil if they are those of the command.
func (u *universal) chosen(args []string) (launcher.SubLauncher, error) {
	if len(args) > 0 {
		for _, sub := range u.subs {
			if sub.Keyword() == args[0] {
				return sub, nil
			}
		}
		if isHelp(args[0]) || args[0] == "--version" || !strings.HasPrefix(args[0], "-") {
			return nil, nil
		}
	}
	if len(u.subs) == 0 {
		return nil, fmt.Errorf("the program has no launchers; name a verb such as run, see help")
	}
	return u.subs[0], nil
}

func isHelp(word string) bool {
	return word == "help" || word == "-h" || word == "-help" || word == "--help"
}

func (u *universal) CommandLineSyntax() string {
	var b strings.Builder
	b.WriteString("The first argument chooses how the program runs:\n\n")
	for i, sub := range u.subs {
		fmt.Fprintf(&b, "  %-8s %s", sub.Keyword(), sub.SimpleDescription())
		if i == 0 {
			b.WriteString(" (default)")
		}
		b.WriteByte('\n')
	}
	b.WriteString("  help     list all other verbs, such as run, resume, runs and show\n")
	for _, sub := range u.subs {
		fmt.Fprintf(&b, "\n%s\n%s", sub.Keyword(), sub.CommandLineSyntax())
	}
	return b.String()
}
