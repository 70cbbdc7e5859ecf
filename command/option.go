// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/process/hook"
	"github.com/refrain-dev/refrain/internal/runs/cluster"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// Option adds something to the command that [Main] runs: the result of a function such as [Tool], or a [Config].
type Option interface{ apply(*options) }

// adds is the option of a function.
type adds func(*options)

func (f adds) apply(o *options) { f(o) }

// options holds the values of the options.
type options struct {
	code   program.Code
	models bool    // the program has providers of models
	config *Config // nil: there is none
}

// Config is the [Option] with the settings of a program. At most one is given; zero fields mean the defaults.
type Config struct {
	// Name is the name of the program in help texts and messages. The default is the name of the executable for a program
	// with code, models or definitions of its own, and otherwise refrain.
	Name string
	// Args are the arguments, without the name of the program. The default, nil, is the arguments of the process; a list that
	// is empty but not nil means no arguments.
	Args []string
	// Cluster is the connection with the cluster that --temporal names, such as cluster.Temporal of the module temporal.
	// Without it, refrain starts the program refrain-temporal, and a program of another name refuses --temporal.
	Cluster cluster.Cluster
	// SessionService, ArtifactService and MemoryService keep the runs, their files, and what agents remember, unless --store
	// names another store. A nil service means the command's own. The command closes none of them. To resume runs in
	// another process, such as after a crash, SessionService must be a store on a disk or in a database; all such stores of
	// this project will do.
	SessionService  session.Service
	ArtifactService artifact.Service
	MemoryService   memory.Service
	// PluginConfig has plugins, whose callbacks apply to all runs that this process drives. The command does not close them.
	PluginConfig runner.PluginConfig
	// Around wraps the handler of the verb serve, such as to add routes. Requests that the wrapper answers itself are not
	// guarded, because the server's checks of the host, the origin and the token are inside.
	Around func(http.Handler) (http.Handler, error)
	// Began is called with the address of the server of the verb serve when it listens.
	Began func(url string)
}

func (c Config) apply(o *options) {
	if o.config != nil {
		panic("command.Main: there are two Configs")
	}
	o.config, o.code.Name = &c, c.Name
}

// Tool adds tools. A definition names one in tools: [NAME].
func Tool(tools ...tool.Tool) Option {
	return adds(func(o *options) { o.code.Tools = append(o.code.Tools, tools...) })
}

// Toolset adds sets of tools. A definition names one in tools: [NAME].
func Toolset(sets ...tool.Toolset) Option {
	return adds(func(o *options) { o.code.Toolsets = append(o.code.Toolsets, sets...) })
}

// Agent adds agents. A definition has one as a step of the type func, and the command runs it by its name:
//
//	type: func
//	func: reviewer
//
// All runs share the agent. The step runs the agent itself if it has the agent's name and adds no callbacks and no
// output_key. Otherwise the agent becomes the step's sub-agent; if agent.New made it, the step runs a copy with the
// step's name and callbacks. In a definition and on the command line its name has _ in place of a blank and other
// characters that no definition can have in its name. For an agent that is made anew for each run, use [NewAgent].
func Agent(agents ...agent.Agent) Option {
	return adds(func(o *options) {
		for _, a := range agents {
			if a == nil {
				panic("command.Main: an agent is nil")
			}
			name := program.DefinitionName(a.Name())
			NewAgent(name, program.Shared(a)).apply(o)
			o.code.Describe(name, a.Description())
		}
	})
}

// NewAgent adds an agent that is made anew for each run and for each step that names it.
func NewAgent(name string, make definition.NewAgent) Option {
	return adds(func(o *options) { add("agents", &o.code.Agents, name, make) })
}

// Callback adds a function that callbacks of a definition can name: {func: NAME}.
func Callback(name string, f hook.Func) Option {
	return adds(func(o *options) { add("callbacks", &o.code.Callbacks, name, f) })
}

// Model adds a provider of models: the model "NAME/MODEL" is the result of open for MODEL.
func Model(name string, open func(ctx context.Context, model string) (model.LLM, error)) Option {
	return adds(func(o *options) {
		provider.Register(name, open)
		o.models = true
	})
}

// Definition adds a definition, as YAML. The command takes the definition's name in place of a
// file.
func Definition(text string) Option {
	return adds(func(o *options) { o.code.Sources = append(o.code.Sources, program.Text(text)) })
}

// DefinitionFS adds the definition in a file of a file system, such as an embed.FS, which also has the files that the
// definition refers to.
func DefinitionFS(fsys fs.FS, path string) Option {
	return adds(func(o *options) {
		if fsys == nil {
			panic(fmt.Sprintf("command.Main: the file system of the definition %q is nil", path))
		}
		o.code.Sources = append(o.code.Sources, program.Source{FS: fsys, Path: path})
	})
}

// add adds a value by its name. It panics if there is one of this name, as provider.Register does.
func add[T any](what string, to *map[string]T, name string, v T) {
	if _, twice := (*to)[name]; twice {
		panic(fmt.Sprintf("command.Main: two %s are called %q", what, name))
	}
	if *to == nil {
		*to = make(map[string]T)
	}
	(*to)[name] = v
}

// collect applies options. It panics if one is a mistake of the program.
func collect(opts []Option) options {
	var o options
	for _, opt := range opts {
		if opt == nil {
			panic("command.Main: an option is nil")
		}
		opt.apply(&o)
	}
	c := &o.code
	var cfg definition.BuildConfig
	c.Into(&cfg)
	if err := cfg.Check(); err != nil {
		panic("command.Main: " + err.Error())
	}
	own := len(c.Tools)+len(c.Toolsets)+len(c.Agents)+len(c.Callbacks)+len(c.Sources) > 0 || o.models
	if c.Name == "" && own {
		c.Name = strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	}
	if o.config == nil {
		o.config = new(Config)
	}
	return o
}
