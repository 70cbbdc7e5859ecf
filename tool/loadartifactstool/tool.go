// SPDX-License-Identifier: Apache-2.0

// Package loadartifactstool provides load_artifacts, with which a model reads the files of its session.
//
//	a, err := llmagent.New(llmagent.Config{Name: "reader", Model: llm, Tools: []tool.Tool{loadartifactstool.New()}})
//
// Each request lists the names of the files. Only the request after a call has the contents of the files, which are
// not in the log. The runner needs an artifact service; without one the agent fails.
package loadartifactstool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

const (
	name        = "load_artifacts"
	parameter   = "artifact_names"
	instruction = "You have a list of artifacts:\n%s\nTo read a file, call `" + name + "` with its name and say nothing else in that turn. " +
		"The content is in the next message only. Call `" + name + "` again when you need it later."
)

// New returns load_artifacts.
func New() tool.Tool { return loadArtifacts{} }

type loadArtifacts struct{}

func (loadArtifacts) Name() string { return name }
func (loadArtifacts) Description() string {
	return "Loads files into the conversation, so that you can read them."
}
func (loadArtifacts) IsLongRunning() bool { return false }

func (t loadArtifacts) Declaration() *genai.FunctionDeclaration {
	return &genai.FunctionDeclaration{Name: name, Description: t.Description(), Parameters: &genai.Schema{
		Type: genai.TypeObject,
		Properties: map[string]*genai.Schema{
			parameter: {Type: genai.TypeArray, Items: &genai.Schema{Type: genai.TypeString}},
		},
	}}
}

// Run answers with the names. The next ProcessRequest loads them.
func (loadArtifacts) Run(_ tool.Context, args any) (map[string]any, error) {
	m, ok := args.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("arguments: want a map, not %T", args)
	}
	names, ok := texts(m[parameter])
	if !ok {
		return nil, fmt.Errorf("%s: want a list of file names", parameter)
	}
	return map[string]any{parameter: names}, nil
}

func (t loadArtifacts) ProcessRequest(ctx tool.Context, req *model.LLMRequest) error {
	files := ctx.Artifacts()
	if files == nil {
		return errors.New("the runner has no artifact service: set ArtifactService in its config")
	}
	if err := tool.Pack(req, t); err != nil {
		return err
	}
	list, err := files.List(ctx)
	if err != nil {
		return fmt.Errorf("list artifacts: %w", err)
	}
	if len(list.FileNames) > 0 {
		names, err := json.Marshal(list.FileNames)
		if err != nil {
			return fmt.Errorf("list artifacts: %w", err)
		}
		tool.Instruct(req, fmt.Sprintf(instruction, names))
	}
	for _, file := range callNames(req) {
		part, err := load(ctx, files, file)
		if err != nil {
			return err
		}
		said := genai.NewPartFromText("Artifact " + file + " is:")
		req.Contents = append(req.Contents, &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{said, part}})
	}
	return nil
}

// callNames returns the names that the model has just asked for, each once.
func callNames(req *model.LLMRequest) (names []string) {
	if len(req.Contents) == 0 {
		return nil
	}
	last := req.Contents[len(req.Contents)-1]
	if last == nil {
		return nil
	}
	for _, p := range last.Parts {
		if p == nil || p.FunctionResponse == nil || p.FunctionResponse.Name != name {
			continue
		}
		asked, _ := texts(p.FunctionResponse.Response[parameter])
		for _, file := range asked {
			if !slices.Contains(names, file) {
				names = append(names, file)
			}
		}
	}
	return names
}

// load returns a part that a model can read. If there is no such file, the part says so: the model has
// made up the name.
func load(ctx tool.Context, files agent.Artifacts, file string) (*genai.Part, error) {
	got, err := files.Load(ctx, file)
	switch {
	case errors.Is(err, artifact.ErrNotFound), errors.Is(err, artifact.ErrInvalid):
		return genai.NewPartFromText("[There is no such file.]"), nil
	case err != nil:
		return nil, fmt.Errorf("load artifact %q: %w", file, err)
	case got.Part == nil:
		return genai.NewPartFromText("[The file is empty.]"), nil
	case got.Part.InlineData == nil:
		return got.Part, nil
	}
	data := got.Part.InlineData
	kind, _, _ := strings.Cut(data.MIMEType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	family, _, _ := strings.Cut(kind, "/")
	switch {
	case len(data.Data) == 0:
		return genai.NewPartFromText("[The file is empty.]"), nil
	case kind == "application/pdf", slices.Contains([]string{"image", "audio", "video"}, family):
		return got.Part, nil
	case family == "text", slices.Contains([]string{"application/json", "application/xml", "application/csv"}, kind):
		return genai.NewPartFromText(strings.ToValidUTF8(string(data.Data), "\uFFFD")), nil
	}
	return genai.NewPartFromText(fmt.Sprintf("[A file of the type %q, %d bytes, which cannot be shown.]", kind, len(data.Data))), nil
}

// texts returns a list of texts, which is a []any after it was in a log. Nil is an empty list.
func texts(v any) (list []string, ok bool) {
	switch v := v.(type) {
	case nil:
		return []string{}, true
	case []string:
		return slices.Clone(v), true
	case []any:
		list = make([]string, len(v))
		for i := range v {
			if list[i], ok = v[i].(string); !ok {
				return nil, false
			}
		}
		return list, true
	}
	return nil, false
}
