// SPDX-License-Identifier: Apache-2.0

package running

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/server"
)

// NewToken returns the command that says who may use a server.
func NewToken(e *term.Env) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Say who may use a server, each with a role and a token",
		Long: `Add people to a file, list them, and remove them. With refrain serve --tokens FILE only they
may use the server: a reader looks, an operator also starts runs and acts on them, and an
author also changes and sends definitions and removes runs. The file has hashes of the
tokens, and not the tokens. A server reads it again at each request: changes count at once.`,
		Example: `  refrain token add ana --role operator
  refrain serve --tokens ~/.config/refrain/tokens.json
  refrain token remove ana`,
	}
	cmd.PersistentFlags().StringVar(&path, "tokens", "", "`file` of the people (default refrain/tokens.json in XDG_CONFIG_HOME or ~/.config)")
	file := func() (string, error) {
		if found := cmp.Or(path, userFile(e.Getenv, "tokens.json")); found != "" {
			return found, nil
		}
		return "", term.UsageError(errors.New("there is no home folder for the file of people: name one with --tokens FILE"))
	}
	var role string
	var bare bool
	add := &cobra.Command{
		Use: "add NAME", Short: "Add a person, and print the person's token once", Args: cobra.ExactArgs(1),
		Long: `Add a person, and print the person's token. Nobody can print it again: a lost token is
removed, and another one added. With --no-token the person has none, because a proxy
names the person: see refrain help serve, --trust-proxy-header.`,
		Example: "  refrain token add ana --role operator\n  refrain token add bob@example.org --role reader --no-token",
		RunE: func(_ *cobra.Command, args []string) error {
			who := access.Person{Name: args[0]}
			var err error
			if who.Role, err = access.ParseRole(role); err != nil {
				return term.UsageError(fmt.Errorf("--role: %w", err))
			}
			name, err := file()
			if err == nil && path == "" {
				err = os.MkdirAll(filepath.Dir(name), 0o700)
			}
			if err != nil {
				return err
			}
			token, err := access.At(name).Add(who, !bare)
			if err != nil {
				return term.Failure(err)
			}
			if token == "" {
				_, err = fmt.Fprintf(e.Stdout, "%s is %s in %s\n", who.Name, withArticle(who.Role), name)
				return term.Failure(err)
			}
			fmt.Fprintf(e.Stderr, "%s is %s in %s. This is the only time that the token is shown:\n", who.Name, withArticle(who.Role), name)
			_, err = fmt.Fprintln(e.Stdout, token)
			return term.Failure(err)
		},
	}
	add.Flags().StringVar(&role, "role", "", "`role` of the person: reader, operator or author")
	add.Flags().BoolVar(&bare, "no-token", false, "make no token, for a person whom a proxy names")
	cmd.AddCommand(add, &cobra.Command{
		Use: "list", Short: "List the people with their roles", Args: cobra.NoArgs,
		Long: "List the people with their roles, and say who has a token and since when.", Example: "  refrain token list",
		RunE: func(*cobra.Command, []string) error {
			name, err := file()
			if err != nil {
				return err
			}
			all, err := access.At(name).List()
			if err != nil {
				return term.UsageError(howToMake(err))
			}
			w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tROLE\tTOKEN\tADDED")
			for i := range all {
				has := "yes"
				if all[i].Hash == "" {
					has = "no"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", all[i].Name, all[i].Role, has, all[i].Added.Local().Format(time.DateTime))
			}
			return term.Failure(w.Flush())
		},
	}, &cobra.Command{
		Use: "remove NAME", Short: "Remove a person, whose token then opens nothing", Args: cobra.ExactArgs(1),
		Long: `Remove a person. From then on every server with this file refuses the token, and within a
second it ends the person's streams of events.`,
		Example: "  refrain token remove ana",
		RunE: func(_ *cobra.Command, args []string) error {
			name, err := file()
			if err != nil {
				return err
			}
			if err := access.At(name).Remove(args[0]); err != nil {
				return term.UsageError(err)
			}
			_, err = fmt.Fprintf(e.Stdout, "%s is removed from %s\n", args[0], name)
			return term.Failure(err)
		},
	})
	return cmd
}

func withArticle(r access.Role) string {
	if r == access.Reader {
		return "a " + r.String()
	}
	return "an " + r.String()
}

// howToMake adds to the error of a missing file how to make it.
func howToMake(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; refrain token add NAME --role ROLE --tokens FILE makes the file", err)
	}
	return err
}

// peopleFlags are the flags of refrain serve that say who may use the server.
type peopleFlags struct {
	tokens          string
	proxies         []string
	header, forRest string
}

// needed reports whether the server refuses everybody whom it does not know.
func (f *peopleFlags) needed() bool { return f.tokens != "" || f.header != "" }

// set puts the people and the proxy into the config of a server.
func (f *peopleFlags) set(cfg *server.Config) error {
	var err error
	if f.tokens != "" {
		if cfg.People, err = access.Open(f.tokens); err != nil {
			return term.UsageError(fmt.Errorf("--tokens: %w", howToMake(err)))
		}
	}
	for _, text := range f.proxies {
		network, err := netip.ParsePrefix(text)
		if addr, plain := netip.ParseAddr(text); plain == nil {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return term.UsageError(fmt.Errorf("--trust-proxy %q: write the address or the network of the proxy, such as 127.0.0.1 or 10.0.0.0/24", text))
		}
		cfg.Proxy.From = append(cfg.Proxy.From, network.Masked())
	}
	if cfg.Proxy.Header = f.header; f.header != "" && len(f.proxies) == 0 {
		return term.UsageError(errors.New("--trust-proxy-header: everybody can send a header, so name the addresses of the proxy with --trust-proxy"))
	}
	if f.forRest != "" {
		if cfg.Proxy.Role, err = access.ParseRole(f.forRest); err != nil {
			return term.UsageError(fmt.Errorf("--proxy-role: %w", err))
		}
		if f.header == "" {
			return term.UsageError(errors.New("--proxy-role is for people whom a proxy names: give --trust-proxy-header too"))
		}
	}
	return nil
}
